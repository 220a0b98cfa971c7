// franz-kafka@0.7.5 of npm, which speaks Kafka 0.7 and compresses: `produce PORT TOPIC TEXT...` sends one gzip set,
// `consume PORT TOPIC` prints what it gets.
'use strict'
const Kafka = require('franz-kafka')

const [what, port, topic, ...texts] = process.argv.slice(2)
const brokers = [{ id: 0, host: '127.0.0.1', port: Number(port) }]
const kafka = new Kafka({ brokers, compression: 'gzip', minFetchDelay: 50, maxFetchDelay: 200 })

kafka.connect(() => {
  if (what === 'produce') {
    const { partitions } = kafka.topic(topic, { partitions: { produce: ['0:1'] } })
    partitions.write(texts.map(text => Buffer.from(text)), error => {
      if (error) throw error
      kafka.broker(0).destroy()
    })
  } else {
    const found = kafka.topic(topic, { partitions: { consume: ['0-0:0'] } })
    found.on('data', text => console.log(String(text)))
    found.resume()
  }
})
