'use strict'
// Commands as JSON lines on stdin, each answered by one line on stdout.

const readline = require('node:readline')
const { version } = require('kafkajs/package.json')
const { connect, describe, inTime, tell } = require('./client')
const { Groups } = require('./groups')
const { Records } = require('./records')
const { Topics } = require('./topics')

async function serve(bootstrap) {
  const kafka = connect(bootstrap)
  const admin = kafka.admin({ retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 10 } })
  await admin.connect()
  const records = new Records(kafka, admin)
  const commands = {
    describe: async () => ({ client: 'kafkajs', version }),
    ...records.commands(),
    ...new Groups(kafka, admin).commands(),
    ...new Topics(admin).commands(),
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    tell(await answer(commands, JSON.parse(line)))
  }
  await records.close()
  await admin.disconnect()
}

async function answer(commands, asked) {
  const command = commands[asked.do]
  if (!command) return { error: 'unsupported' }
  try {
    return { ok: await inTime(command(asked)) }
  } catch (error) {
    console.error(error)
    return { error: describe(error) }
  }
}

module.exports = { serve }
