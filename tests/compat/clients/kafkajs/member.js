'use strict'
// A member of a group: reads, commits, tells; leaves on SIGTERM.

const { connect, describe, tell } = require('./client')
const { loadCodecs } = require('./codecs')

/** What KafkaJS has not, of what is asked; undefined if it has it all. */
function lacking({ instance = '', strategy = 'roundrobin', protocol = 'classic' }) {
  if (protocol !== 'classic') return `the protocol ${protocol}`
  if (instance) return 'static members'
  if (strategy !== 'roundrobin') return `an assigner called ${strategy}`
  return undefined
}

async function become(asked) {
  const missing = lacking(asked)
  if (missing) {
    console.error(`KafkaJS does not have ${missing}`)
    process.exitCode = 3
    return
  }
  await loadCodecs()
  const consumer = connect(asked.bootstrap).consumer({
    groupId: asked.group,
    sessionTimeout: asked.session ?? 6_000,
    // It may come back as a new member after it lost the broker: this long the others then wait for the old one.
    rebalanceTimeout: 10_000,
    heartbeatInterval: 300,
    metadataMaxAge: 1_000,
    maxWaitTimeInMs: 200,
    retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 100 },
  })
  follow(consumer, asked.topic)
  process.once('SIGTERM', async () => {
    await consumer.disconnect()
    tell({ closed: true })
    process.exit(0)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [asked.topic], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatch: batch => take(consumer, batch) })
}

/** Tells what it is given and what is taken away: KafkaJS gives up everything in each rebalance. */
function follow(consumer, topic) {
  let owned = []
  const giveUp = () => {
    if (owned.length) tell({ revoked: owned })
    owned = []
  }
  consumer.on(consumer.events.REBALANCING, giveUp)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    giveUp()
    owned = [...(payload.memberAssignment[topic] ?? [])].sort((one, other) => one - other)
    tell({ assigned: owned })
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    console.error(payload.error)
    if (!payload.restart) process.exit(1)
  })
}

async function take(consumer, { batch, heartbeat }) {
  const { topic, partition } = batch
  for (const message of batch.messages) tell({ read: [partition, Number(message.offset)] })
  const offset = String(BigInt(batch.lastOffset()) + 1n)
  try {
    await consumer.commitOffsets([{ topic, partition, offset }])
  } catch (error) {
    if (error.type) tell({ refused: describe(error) })
    throw error // KafkaJS joins again, or tries again
  }
  tell({ committed: { [partition]: Number(offset) } })
  await heartbeat()
}

module.exports = { become }
