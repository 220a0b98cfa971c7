'use strict'
// What every client here is told, what its errors are called, and how lines are written.

const { Kafka, logLevel } = require('kafkajs')
const { secure } = require('./security')

const PATIENCE = 30_000 // ms for one command

/** A client that comes back quickly after a restart of the broker, and logs to stderr. */
function connect(bootstrap) {
  return new Kafka({
    brokers: bootstrap.split(','),
    ...secure(),
    connectionTimeout: 3_000,
    requestTimeout: PATIENCE,
    retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 100 },
    logLevel: logLevel.WARN,
    logCreator: () => ({ namespace, label, log }) => console.error(label, namespace, log.message, log.error ?? ''),
  })
}

/** Kafka's name of an error, or the client's words. */
function describe(error) {
  if (error.type) return error.type
  const inner = error.cause ?? error.errors?.[0] ?? error.groups?.[0]?.error ?? error.partitions?.[0]?.error
  return inner ? describe(inner) : error.message
}

/** What is thrown where KafkaJS has no such feature. */
function lacking(what) {
  return Object.assign(new Error(`KafkaJS does not have ${what}`), { type: 'unsupported' })
}

/** One line, at once, with its time: in seconds, on the clock that all processes of the machine share. */
function tell(what) {
  const at = Number(process.hrtime.bigint()) / 1e9
  process.stdout.write(JSON.stringify({ ...what, at }) + '\n')
}

/** What `work` comes to, if it comes in time. */
async function inTime(work, ms = PATIENCE) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

module.exports = { connect, describe, inTime, lacking, tell }
