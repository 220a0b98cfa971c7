package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

func (d *driver) createTopic(asked request) (answer, error) {
	detail := sarama.TopicDetail{NumPartitions: asked.Partitions, ReplicationFactor: 1}
	detail.ConfigEntries = make(map[string]*string, len(asked.Configs))
	for name, value := range asked.Configs {
		detail.ConfigEntries[name] = &value
	}
	return answer{}, d.admin.CreateTopic(asked.Topic, &detail, false)
}

func (d *driver) alterTopic(asked request) (answer, error) {
	changes := make(map[string]sarama.IncrementalAlterConfigsEntry, len(asked.Configs))
	for name, value := range asked.Configs {
		changes[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet,
			Value:     &value,
		}
	}
	return answer{}, d.admin.IncrementalAlterConfig(sarama.TopicResource, asked.Topic, changes, false)
}

func (d *driver) topic(asked request) (answer, error) {
	topics, err := d.admin.DescribeTopics([]string{asked.Topic})
	if err != nil {
		return nil, err
	}
	if len(topics) != 1 {
		return nil, fmt.Errorf("asked for one topic, told of %d", len(topics))
	}
	if topics[0].Err != sarama.ErrNoError {
		return nil, topics[0].Err
	}
	entries, err := d.admin.DescribeConfig(sarama.ConfigResource{
		Type:        sarama.TopicResource,
		Name:        asked.Topic,
		ConfigNames: []string{asked.Config},
	})
	if err != nil {
		return nil, err
	}
	found := answer{"partitions": len(topics[0].Partitions), "value": nil}
	for _, entry := range entries {
		if entry.Name == asked.Config {
			found["value"] = entry.Value
		}
	}
	return found, nil
}

func (d *driver) addPartitions(asked request) (answer, error) {
	return answer{}, d.admin.CreatePartitions(asked.Topic, int32(asked.Total), nil, false)
}

func (d *driver) deleteRecords(asked request) (answer, error) {
	return answer{}, d.admin.DeleteRecords(asked.Topic, map[int32]int64{asked.Partition: asked.Before})
}

func (d *driver) deleteTopic(asked request) (answer, error) {
	return answer{}, d.admin.DeleteTopic(asked.Topic)
}

func (d *driver) offsetForTime(asked request) (answer, error) {
	offset, err := d.client.GetOffset(asked.Topic, asked.Partition, asked.Ms)
	return answer{"offset": offset}, err
}
