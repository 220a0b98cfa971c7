package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/IBM/sarama"
)

func (d *driver) listGroups(request) (answer, error) {
	groups, err := d.admin.ListConsumerGroups()
	if err != nil {
		return nil, err
	}
	found := slices.AppendSeq([]string{}, maps.Keys(groups))
	slices.Sort(found)
	return answer{"groups": found}, nil
}

func (d *driver) describeGroup(asked request) (answer, error) {
	groups, err := d.admin.DescribeConsumerGroups([]string{asked.Group})
	if err != nil {
		return nil, err
	}
	if len(groups) != 1 {
		return nil, fmt.Errorf("asked for one group, told of %d", len(groups))
	}
	if groups[0].Err != sarama.ErrNoError {
		return nil, groups[0].Err
	}
	return answer{"state": groups[0].State, "members": len(groups[0].Members)}, nil
}

func (d *driver) deleteGroup(asked request) (answer, error) {
	return answer{}, d.admin.DeleteConsumerGroup(asked.Group)
}

func (d *driver) committed(asked request) (answer, error) {
	found, err := d.admin.ListConsumerGroupOffsets(asked.Group, map[string][]int32{asked.Topic: {asked.Partition}})
	if err != nil {
		return nil, err
	}
	offset, err := offsetIn(found, asked.Topic, asked.Partition)
	if err != nil {
		return nil, err
	}
	return answer{"offset": offset, "metadata": found.GetBlock(asked.Topic, asked.Partition).Metadata}, nil
}

// offsetIn is what an answer says of one partition; -1 if nothing was committed.
func offsetIn(found *sarama.OffsetFetchResponse, topic string, partition int32) (int64, error) {
	block := found.GetBlock(topic, partition)
	switch {
	case found.Err != sarama.ErrNoError:
		return 0, found.Err
	case block == nil:
		return 0, errors.New("nothing was told of this partition")
	case block.Err != sarama.ErrNoError:
		return 0, block.Err
	}
	return block.Offset, nil
}

func (d *driver) commit(asked request) (answer, error) {
	place := sarama.OffsetAndMetadata{Offset: asked.Offset, Metadata: asked.Metadata, LeaderEpoch: -1}
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{asked.Topic: {asked.Partition: place}}
	done, err := d.admin.AlterConsumerGroupOffsets(asked.Group, offsets, nil)
	if err != nil {
		return nil, err
	}
	if refused := done.Errors[asked.Topic][asked.Partition]; refused != sarama.ErrNoError {
		return nil, refused
	}
	return answer{}, nil
}
