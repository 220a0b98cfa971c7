package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// walk reads, seeks, pauses and resumes. Sarama has no seek: a reader elsewhere takes the first one's place.
func (d *driver) walk(asked request) (answer, error) {
	from, err := d.open(asked, 0)
	if err != nil {
		return nil, err
	}
	first, err := from.read(10)
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, err
	}
	if from, err = d.open(asked, 3); err != nil {
		return nil, err
	}
	found, err := pauseAndResume(from)
	found["first"] = offsets(first)
	return found, errors.Join(err, from.Close())
}

// pauseAndResume: Pause stops fetches only. What was fetched before it still comes, and is kept to be read after Resume.
func pauseAndResume(from *reader) (answer, error) {
	sought, err := from.read(5)
	if err != nil {
		return answer{}, err
	}
	from.Pause()
	fetched := from.readUntilQuiet(500 * time.Millisecond)
	paused := from.readUntilQuiet(time.Second)
	from.Resume()
	resumed := append(fetched, paused...)
	if len(resumed) < 5 {
		more, err := from.read(5 - len(resumed))
		if err != nil {
			return answer{}, err
		}
		resumed = append(resumed, more...)
	}
	return answer{"sought": offsets(sought), "paused": len(paused), "resumed": offsets(resumed[:5])}, nil
}

// readUntilQuiet reads until nothing has come for this long.
func (r *reader) readUntilQuiet(quiet time.Duration) []*sarama.ConsumerMessage {
	var found []*sarama.ConsumerMessage
	for {
		select {
		case message := <-r.Messages():
			found = append(found, message)
		case <-time.After(quiet):
			return found
		}
	}
}

func offsets(messages []*sarama.ConsumerMessage) []int64 {
	found := make([]int64, 0, len(messages))
	for _, each := range messages {
		found = append(found, each.Offset)
	}
	return found
}
