'use strict'
// Topics: their making, their settings, their end.

const { ConfigResourceTypes } = require('kafkajs')

class Topics {
  constructor(admin) {
    this.admin = admin
  }

  commands() {
    return {
      create_topic: asked => this.create(asked),
      alter_topic: asked => this.alter(asked),
      topic: asked => this.show(asked),
      add_partitions: asked => this.addPartitions(asked),
      delete_records: asked => this.deleteRecords(asked),
      delete_topic: asked => this.delete(asked),
    }
  }

  async create({ topic, partitions, configs }) {
    const made = await this.admin.createTopics({
      topics: [{ topic, numPartitions: partitions, configEntries: entries(configs) }],
    })
    // KafkaJS says false where the broker said TOPIC_ALREADY_EXISTS.
    if (!made) throw Object.assign(new Error('it exists'), { type: 'TOPIC_ALREADY_EXISTS' })
    return {}
  }

  async alter({ topic, configs }) {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries: entries(configs) }
    await this.admin.alterConfigs({ resources: [resource] })
    return {}
  }

  async show({ topic, config }) {
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] })
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: [config] }
    const { resources } = await this.admin.describeConfigs({ resources: [resource] })
    return { partitions: topics[0].partitions.length, value: resources[0].configEntries[0].configValue }
  }

  async addPartitions({ topic, total }) {
    await this.admin.createPartitions({ topicPartitions: [{ topic, count: total }] })
    return {}
  }

  async deleteRecords({ topic, partition, before }) {
    await this.admin.fetchTopicOffsets(topic) // it looks for the leader before it has asked who that is
    await this.admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return {}
  }

  async delete({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
    return {}
  }
}

const entries = configs => Object.entries(configs).map(([name, value]) => ({ name, value: String(value) }))

module.exports = { Topics }
