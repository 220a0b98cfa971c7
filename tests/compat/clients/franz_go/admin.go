package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func (d *driver) createTopic(ctx context.Context, asked request) (answer, error) {
	configs := make(map[string]*string, len(asked.Configs))
	for name, value := range asked.Configs {
		configs[name] = &value
	}
	_, err := d.admin.CreateTopic(ctx, asked.Partitions, 1, configs, asked.Topic)
	return answer{}, err
}

func (d *driver) alterTopic(ctx context.Context, asked request) (answer, error) {
	var changes []kadm.AlterConfig
	for name, value := range asked.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	done, err := d.admin.AlterTopicConfigs(ctx, changes, asked.Topic)
	if err != nil {
		return nil, err
	}
	altered, err := done.On(asked.Topic, nil)
	if err != nil {
		return nil, err
	}
	return answer{}, altered.Err
}

func (d *driver) topic(ctx context.Context, asked request) (answer, error) {
	topics, err := d.admin.ListTopics(ctx, asked.Topic)
	if err != nil {
		return nil, err
	}
	if err := topics.Error(); err != nil {
		return nil, err
	}
	resources, err := d.admin.DescribeTopicConfigs(ctx, asked.Topic)
	if err != nil {
		return nil, err
	}
	resource, err := resources.On(asked.Topic, nil)
	if err != nil {
		return nil, err
	}
	if resource.Err != nil {
		return nil, resource.Err
	}
	var value *string
	for _, each := range resource.Configs {
		if each.Key == asked.Config {
			value = each.Value
		}
	}
	return answer{"partitions": len(topics[asked.Topic].Partitions), "value": value}, nil
}

func (d *driver) addPartitions(ctx context.Context, asked request) (answer, error) {
	done, err := d.admin.UpdatePartitions(ctx, asked.Total, asked.Topic)
	if err != nil {
		return nil, err
	}
	return answer{}, done.Error()
}

func (d *driver) deleteRecords(ctx context.Context, asked request) (answer, error) {
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: asked.Topic, Partition: asked.Partition, At: asked.Before})
	done, err := d.admin.DeleteRecords(ctx, before)
	if err != nil {
		return nil, err
	}
	return answer{}, done.Error()
}

func (d *driver) deleteTopic(ctx context.Context, asked request) (answer, error) {
	_, err := d.admin.DeleteTopic(ctx, asked.Topic)
	return answer{}, err
}

// offsetForTime: kadm answers with the end where no record is as late; its timestamp is -1 then.
func (d *driver) offsetForTime(ctx context.Context, asked request) (answer, error) {
	listed, err := d.admin.ListOffsetsAfterMilli(ctx, asked.Ms, asked.Topic)
	if err != nil {
		return nil, err
	}
	found, ok := listed.Lookup(asked.Topic, asked.Partition)
	if !ok {
		return nil, kerr.UnknownTopicOrPartition
	}
	if found.Err != nil || found.Timestamp < 0 {
		return answer{"offset": -1}, found.Err
	}
	return answer{"offset": found.Offset}, nil
}
