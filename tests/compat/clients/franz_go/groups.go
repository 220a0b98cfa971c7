package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func (d *driver) commit(ctx context.Context, asked request) (answer, error) {
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{
		Topic:       asked.Topic,
		Partition:   asked.Partition,
		At:          asked.Offset,
		LeaderEpoch: -1,
		Metadata:    asked.Metadata,
	})
	done, err := d.admin.CommitOffsets(ctx, asked.Group, offsets)
	if err != nil {
		return nil, err
	}
	return answer{}, done.Error()
}

func (d *driver) committed(ctx context.Context, asked request) (answer, error) {
	offsets, err := d.admin.FetchOffsets(ctx, asked.Group)
	if err != nil {
		return nil, err
	}
	found, ok := offsets.Lookup(asked.Topic, asked.Partition)
	if !ok {
		return answer{"offset": -1, "metadata": ""}, nil
	}
	return answer{"offset": found.At, "metadata": found.Metadata}, found.Err
}

func (d *driver) listGroups(ctx context.Context, _ request) (answer, error) {
	groups, err := d.admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	return answer{"groups": groups.Groups()}, nil
}

func (d *driver) describeGroup(ctx context.Context, asked request) (answer, error) {
	groups, err := d.admin.DescribeGroups(ctx, asked.Group)
	if err != nil {
		return nil, err
	}
	group, err := groups.On(asked.Group, nil)
	if err != nil {
		return nil, err
	}
	if errors.Is(group.Err, kerr.GroupIDNotFound) {
		return d.describeConsumerGroup(ctx, asked.Group)
	}
	return answer{"state": group.State, "members": len(group.Members)}, group.Err
}

// describeConsumerGroup is for groups of KIP-848, which are none for DescribeGroups.
func (d *driver) describeConsumerGroup(ctx context.Context, name string) (answer, error) {
	groups, err := d.admin.DescribeConsumerGroups(ctx, name)
	if err != nil {
		return nil, err
	}
	group, ok := groups[name]
	if !ok {
		return nil, kerr.GroupIDNotFound
	}
	return answer{"state": group.State, "members": len(group.Members)}, group.Err
}

func (d *driver) deleteGroup(ctx context.Context, asked request) (answer, error) {
	_, err := d.admin.DeleteGroup(ctx, asked.Group)
	return answer{}, err
}
