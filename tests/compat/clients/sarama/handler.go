package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const (
	batch = 20 // records read before they are committed
	pause = 200 * time.Millisecond
)

// handler is what Sarama calls with the partitions of this member, each on a goroutine of its own.
type handler struct {
	group   string
	admin   sarama.ClusterAdmin
	silence time.Duration // that the group surely puts up with

	lock  sync.Mutex
	owned map[int32]bool // and told
}

// Setup begins a session: with an eager strategy each generation has one, with a cooperative one all share the first.
func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, partitions := range session.Claims() {
		for _, partition := range partitions {
			h.owned[partition] = true
		}
	}
	tell(answer{"assigned": h.sorted()})
	return nil
}

// Cleanup ends a session.
func (h *handler) Cleanup(sarama.ConsumerGroupSession) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	tell(answer{"revoked": h.sorted()})
	clear(h.owned)
	return nil
}

func (h *handler) sorted() []int32 {
	found := slices.AppendSeq([]int32{}, maps.Keys(h.owned))
	slices.Sort(found)
	return found
}

// ConsumeClaim has one partition, until it is taken away or the session ends.
func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	h.gain(claim.Partition())
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				h.lose(session, claim.Partition())
				return nil
			}
			h.take(session, claim, message)
		case <-session.Context().Done():
			return nil
		}
	}
}

// gain tells of a partition that came within a session.
func (h *handler) gain(partition int32) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if !h.owned[partition] {
		h.owned[partition] = true
		tell(answer{"assigned": []int32{partition}})
	}
}

// lose tells of a partition that was taken away within a session.
func (h *handler) lose(session sarama.ConsumerGroupSession, partition int32) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if session.Context().Err() == nil {
		delete(h.owned, partition)
		tell(answer{"revoked": []int32{partition}})
	}
}

// take reads what is there, and commits it.
func (h *handler) take(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim, message *sarama.ConsumerMessage,
) {
	for count := 1; message != nil; count++ {
		tell(answer{"read": []int64{int64(message.Partition), message.Offset}})
		session.MarkMessage(message, "")
		end := message.Offset + 1
		message = nil
		if count < batch {
			select {
			case message = <-claim.Messages(): // nil once it is closed
			default:
			}
		}
		if message == nil {
			h.commit(session, claim, end)
		}
	}
}

// commit: Sarama's does not say how it went, so the broker is asked what it has now. A session that ends meanwhile ends
// the attempts, but not the question: the partition is this member's until it joins again, or has been silent too long.
func (h *handler) commit(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim, end int64) {
	var late <-chan time.Time
	done := session.Context().Done()
	for {
		if done != nil {
			session.Commit()
		}
		stored, err := h.stored(claim)
		if err == nil && stored == end {
			tell(answer{"committed": map[int32]int64{claim.Partition(): end}})
		}
		if err == nil && (stored >= end || done == nil) {
			return
		}
		select {
		case <-done:
			done, late = nil, time.After(h.silence)
		case <-late:
			return
		case <-time.After(pause):
		}
	}
}

// stored is the group's offset as the broker has it.
func (h *handler) stored(claim sarama.ConsumerGroupClaim) (int64, error) {
	topic, partition := claim.Topic(), claim.Partition()
	found, err := h.admin.ListConsumerGroupOffsets(h.group, map[string][]int32{topic: {partition}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "offsets:", err)
		return 0, err
	}
	return offsetIn(found, topic, partition)
}
