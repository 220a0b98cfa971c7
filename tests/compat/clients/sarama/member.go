package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

// refusals are the errors with which a coordinator refuses a commit.
var refusals = []error{
	sarama.ErrIllegalGeneration,
	sarama.ErrUnknownMemberId,
	sarama.ErrRebalanceInProgress,
	sarama.ErrFencedInstancedId,
}

// takePart is a member of a group: it reads, commits and tells, and leaves on SIGTERM.
func takePart(asked options) error {
	strategy, ok := strategies[asked.Strategy]
	if !ok {
		return fmt.Errorf("%w: Sarama has no strategy %s", errUnsupported, asked.Strategy)
	}
	if asked.Protocol != "classic" {
		return fmt.Errorf("%w: Sarama has no group protocol %s", errUnsupported, asked.Protocol)
	}
	running, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := settings()
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	config.Consumer.Group.Rebalance.Retry.Backoff = 200 * time.Millisecond
	config.Consumer.Group.Session.Timeout = time.Duration(asked.Session) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	config.Consumer.Group.InstanceId = asked.Instance
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	addresses := strings.Split(asked.Bootstrap, ",")
	group, err := sarama.NewConsumerGroup(addresses, asked.Group, config)
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdmin(addresses, settings())
	if err != nil {
		return errors.Join(err, group.Close())
	}
	go listen(group.Errors())
	silence := config.Consumer.Group.Session.Timeout / 2
	handler := &handler{group: asked.Group, admin: admin, silence: silence, owned: make(map[int32]bool)}
	for running.Err() == nil {
		if err := group.Consume(running, []string{asked.Topic}, handler); err != nil && running.Err() == nil {
			fmt.Fprintln(os.Stderr, "consume:", err)
			time.Sleep(pause)
		}
	}
	if err := errors.Join(group.Close(), admin.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "close:", err) // whom the broker could not hear leave, it will miss
	}
	tell(answer{"closed": true})
	return nil
}

// listen tells of commits that were refused; Sarama's Commit does not.
func listen(errs <-chan error) {
	for err := range errs {
		fmt.Fprintln(os.Stderr, "group:", err)
		var about *sarama.ConsumerError
		if !errors.As(err, &about) {
			continue
		}
		for _, refusal := range refusals {
			if errors.Is(about.Err, refusal) {
				tell(answer{"refused": errorName(about.Err)})
			}
		}
	}
}
