'use strict'
// Writing records, and reading them.

const { Partitioners, CompressionTypes } = require('kafkajs')
const { lacking } = require('./client')
const { loadCodecs } = require('./codecs')
const { Reader } = require('./reader')

const ACKS = { 0: 0, 1: 1, all: -1 }
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}
const SEND_BYTES = 500_000 // KafkaJS makes one batch of one send, however large

class Records {
  constructor(kafka, admin) {
    this.kafka = kafka
    this.admin = admin
    this.producers = {}
    this.codecs = loadCodecs()
  }

  commands() {
    return {
      produce: asked => this.produce(asked),
      consume: asked => this.consume(asked),
      walk: asked => this.walk(asked),
      offset_for_time: asked => this.offsetForTime(asked),
    }
  }

  async produce({ topic, partition, acks, compression, idempotent, records }) {
    await this.codecs
    const producer = await this.producer(idempotent)
    for (const messages of pieces(records.map(record => toMessage(record, partition)))) {
      await producer.send({ topic, messages, acks: ACKS[acks], compression: CODECS[compression] })
    }
    return { count: records.length }
  }

  async consume({ topic, partition, offset, count }) {
    await this.codecs
    return this.reading(topic, partition, async reader => {
      reader.seek(offset)
      return { records: (await reader.read(count)).map(fromMessage) }
    })
  }

  async walk({ topic, partition }) {
    await this.codecs
    const offsets = messages => messages.map(message => Number(message.offset))
    return this.reading(topic, partition, async reader => {
      reader.seek(0)
      const first = offsets(await reader.read(10))
      reader.seek(3)
      const sought = offsets(await reader.read(5))
      const paused = (await reader.paused(1000)).length
      const resumed = offsets(await reader.read(5))
      return { first, sought, paused, resumed }
    })
  }

  async offsetForTime({ topic, partition, ms }) {
    const of = rows => Number(rows.find(row => row.partition === partition).offset)
    const found = of(await this.admin.fetchTopicOffsetsByTimestamp(topic, ms))
    // Where there is no such record KafkaJS answers with the end of the partition.
    const end = of(await this.admin.fetchTopicOffsets(topic))
    return { offset: found === end ? -1 : found }
  }

  async close() {
    for (const producer of Object.values(this.producers)) await producer.disconnect()
  }

  async producer(idempotent) {
    if (!this.producers[idempotent]) {
      const settings = { idempotent, maxInFlightRequests: 1, createPartitioner: Partitioners.DefaultPartitioner }
      this.producers[idempotent] = this.kafka.producer(settings)
      await this.producers[idempotent].connect()
    }
    return this.producers[idempotent]
  }

  async reading(topic, partition, work) {
    const reader = new Reader(this.kafka, topic, partition)
    try {
      await reader.start()
      return await work(reader)
    } finally {
      await reader.close(this.admin)
    }
  }
}

function* pieces(messages) {
  let piece = []
  let bytes = 0
  for (const message of messages) {
    piece.push(message)
    bytes += message.value?.length ?? 0
    if (bytes > SEND_BYTES) {
      yield piece
      piece = []
      bytes = 0
    }
  }
  if (piece.length) yield piece
}

/** Headers of one name become a list: that is how KafkaJS writes them. */
function toMessage({ key, value, headers, timestamp }, partition) {
  const grouped = {}
  for (const [name, bytes] of headers ?? []) {
    if (bytes === null) throw lacking('headers without a value')
    ;(grouped[name] ??= []).push(unpack(bytes))
  }
  const message = { key: unpack(key), value: unpack(value), headers: grouped, partition }
  return timestamp === undefined || timestamp === null ? message : { ...message, timestamp: String(timestamp) }
}

function fromMessage({ offset, timestamp, key, value, headers }) {
  const pairs = Object.entries(headers ?? {}).flatMap(([name, values]) => [values].flat().map(each => [name, pack(each)]))
  return { offset: Number(offset), timestamp: Number(timestamp), key: pack(key), value: pack(value), headers: pairs }
}

const pack = bytes => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString('base64'))
const unpack = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))

module.exports = { Records }
