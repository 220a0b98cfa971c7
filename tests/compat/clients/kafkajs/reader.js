'use strict'
// Reading one partition. KafkaJS reads in groups only: here in one of its own, deleted afterwards.

const { randomUUID } = require('node:crypto')
const { setTimeout: sleep } = require('node:timers/promises')
const { inTime } = require('./client')

class Reader {
  constructor(kafka, topic, partition) {
    this.group = `${topic}-reader-${randomUUID()}`
    this.place = { topic, partition }
    this.consumer = kafka.consumer({ groupId: this.group, maxWaitTimeInMs: 200, maxBytesPerPartition: 4 << 20 })
    this.wanted = 0
    this.found = []
    this.complete = () => {}
  }

  async start() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [this.place.topic], fromBeginning: true })
    const eachBatch = batch => this.take(batch)
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
  }

  seek(offset) {
    this.consumer.seek({ ...this.place, offset: String(offset) })
  }

  /** The next `count` messages. What is left of a batch is fetched again for the next call. */
  async read(count) {
    this.found = []
    const done = new Promise(resolve => (this.complete = resolve))
    this.wanted = count
    if (count > 0) await inTime(done, 25_000)
    return this.found
  }

  /** What comes within `ms` although the partition is paused. */
  async paused(ms) {
    const partitions = [{ topic: this.place.topic, partitions: [this.place.partition] }]
    this.consumer.pause(partitions)
    this.found = []
    this.wanted = Infinity
    await sleep(ms)
    this.wanted = 0
    this.consumer.resume(partitions)
    return this.found
  }

  async take({ batch, resolveOffset, isStale }) {
    if (batch.partition !== this.place.partition) return
    for (const message of batch.messages) {
      if (this.wanted === 0 || isStale()) return
      this.found.push(message)
      resolveOffset(message.offset)
      this.wanted -= 1
      if (this.wanted === 0) this.complete()
    }
  }

  async close(admin) {
    await this.consumer.disconnect()
    await admin.deleteGroups([this.group])
  }
}

module.exports = { Reader }
