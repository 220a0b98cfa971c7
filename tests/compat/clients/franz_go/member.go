package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const turn = 200 * time.Millisecond // how long a poll waits for records

var balancers = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

// takePart is a member of a group: it reads, commits and tells, and leaves on SIGTERM.
func takePart(asked options) error {
	balancer, ok := balancers[asked.Strategy]
	if !ok {
		return fmt.Errorf("%w: franz-go has no strategy %s", errUnsupported, asked.Strategy)
	}
	if asked.Protocol == "consumer" && asked.Strategy == "roundrobin" {
		return fmt.Errorf("%w: franz-go asks no broker for %s", errUnsupported, asked.Strategy)
	}
	running, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	settings := append(connection(asked.Bootstrap),
		kgo.ConsumerGroup(asked.Group),
		kgo.ConsumeTopics(asked.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer()),
		kgo.SessionTimeout(time.Duration(asked.Session)*time.Millisecond),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(tellAssigned(asked.Topic)),
		kgo.OnPartitionsRevoked(tellRevoked(asked.Topic)),
		kgo.OnPartitionsLost(tellRevoked(asked.Topic)),
	)
	if asked.Instance != "" {
		settings = append(settings, kgo.InstanceID(asked.Instance))
	}
	if asked.Protocol == "consumer" {
		settings = append(settings, kgo.ServerSideBalancer()) // KIP-848
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		return err
	}
	for running.Err() == nil {
		takeTurn(running, client, asked.Topic)
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	tell(answer{"closed": true})
	return nil
}

func tellAssigned(topic string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		found := append([]int32{}, partitions[topic]...)
		slices.Sort(found)
		tell(answer{"assigned": found})
	}
}

// tellRevoked leaves out what franz-go says at the end of each session, and again when it could not join: nothing.
func tellRevoked(topic string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		if found := slices.Sorted(slices.Values(partitions[topic])); found != nil {
			tell(answer{"revoked": found})
		}
	}
}

// takeTurn reads what is there, and commits it with whatever could not be committed before.
func takeTurn(running context.Context, client *kgo.Client, topic string) {
	polling, cancel := context.WithTimeout(running, turn)
	defer cancel()
	fetches := client.PollRecords(polling, 20)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, polling.Err()) {
			fmt.Fprintln(os.Stderr, "poll:", failed.Err)
		}
	}
	for _, each := range fetches.Records() {
		tell(answer{"read": []int64{int64(each.Partition), each.Offset}})
	}
	ends := make(map[int32]int64)
	for partition, end := range client.UncommittedOffsets()[topic] {
		ends[partition] = end.Offset
	}
	if len(ends) == 0 {
		return
	}
	committing, cancel := context.WithTimeout(context.WithoutCancel(running), patience)
	defer cancel()
	if err := client.CommitUncommittedOffsets(committing); err != nil {
		tell(answer{"refused": errorName(err)})
		return
	}
	tell(answer{"committed": ends})
}
