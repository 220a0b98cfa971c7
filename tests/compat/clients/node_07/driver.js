// kafka@0.2.3 of npm, which speaks Kafka 0.6: `produce PORT TOPIC TEXT...`, `consume PORT TOPIC` prints what it gets.
'use strict'
const kafka = require('kafka')

const [what, port, topic, ...texts] = process.argv.slice(2)

if (what === 'produce') {
  const producer = new kafka.Producer({ host: '127.0.0.1', port: Number(port), topic })
  producer.connect()
  producer.on('connect', () => {
    producer.send(texts)
    producer.close()
  })
} else {
  const consumer = new kafka.Consumer({ host: '127.0.0.1', port: Number(port), pollInterval: 100 })
  consumer.on('message', (_, message) => console.log(String(message)))
  consumer.connect()
  consumer.subscribeTopic({ name: topic, offset: 0, partition: 0 })
}
