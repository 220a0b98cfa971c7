'use strict'
// Groups from outside: their list, their states, their offsets.

class Groups {
  constructor(kafka, admin) {
    this.kafka = kafka
    this.admin = admin
  }

  commands() {
    return {
      commit: asked => this.commit(asked),
      committed: asked => this.committed(asked),
      list_groups: () => this.list(),
      describe_group: asked => this.describe(asked),
      delete_group: asked => this.delete(asked),
    }
  }

  /** KafkaJS commits as a member only: one that joins, reads nothing, commits and leaves. */
  async commit({ group, topic, partition, offset, metadata }) {
    const consumer = this.kafka.consumer({ groupId: group, maxWaitTimeInMs: 200 })
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic] })
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async () => {} })
      consumer.pause([{ topic }])
      await consumer.commitOffsets([{ topic, partition, offset: String(offset), metadata }])
    } finally {
      await consumer.disconnect()
    }
    return {}
  }

  async committed({ group, topic, partition }) {
    const [{ partitions }] = await this.admin.fetchOffsets({ groupId: group, topics: [topic] })
    const { offset, metadata } = partitions.find(row => row.partition === partition)
    return { offset: Number(offset), metadata: metadata ?? '' }
  }

  async list() {
    const { groups } = await this.admin.listGroups()
    return { groups: groups.map(({ groupId }) => groupId).sort() }
  }

  async describe({ group }) {
    const [{ state, members }] = (await this.admin.describeGroups([group])).groups
    return { state, members: members.length }
  }

  async delete({ group }) {
    await this.admin.deleteGroups([group])
    return {}
  }
}

module.exports = { Groups }
