package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// largestBatch is Kafka's default of max.message.bytes.
const largestBatch = 1_048_588

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

func (d *driver) produce(ctx context.Context, asked request) (answer, error) {
	settings := []kgo.Opt{
		kgo.RequiredAcks(acks[asked.Acks]),
		kgo.ProducerBatchCompression(codecs[asked.Compression]),
		kgo.ProducerBatchMaxBytes(largestBatch),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AllowAutoTopicCreation(),
	}
	if !asked.Idempotent {
		settings = append(settings, kgo.DisableIdempotentWrite())
	}
	client, err := d.open(settings...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sent := make([]*kgo.Record, 0, len(asked.Records))
	for _, each := range asked.Records {
		sent = append(sent, each.toSend(asked.Topic, asked.Partition))
	}
	if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return nil, err
	}
	return answer{"count": len(sent)}, nil
}

func (r record) toSend(topic string, partition int32) *kgo.Record {
	sent := &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value}
	if r.Timestamp != 0 {
		sent.Timestamp = time.UnixMilli(r.Timestamp)
	}
	for _, each := range r.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: each.name, Value: each.value})
	}
	return sent
}

func (d *driver) consume(ctx context.Context, asked request) (answer, error) {
	client, err := d.assign(asked, asked.Offset)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found, err := read(ctx, client, asked.Count)
	if err != nil {
		return nil, err
	}
	records := make([]record, 0, len(found))
	for _, each := range found {
		one := record{each.Offset, each.Timestamp.UnixMilli(), each.Key, each.Value, []header{}}
		for _, pair := range each.Headers {
			one.Headers = append(one.Headers, header{pair.Key, pair.Value})
		}
		records = append(records, one)
	}
	return answer{"records": records}, nil
}

// assign makes a consumer of one partition from an offset on, which does not look for another when there is none.
func (d *driver) assign(asked request, offset int64) (*kgo.Client, error) {
	place := map[string]map[int32]kgo.Offset{asked.Topic: {asked.Partition: kgo.NewOffset().At(offset)}}
	return d.open(kgo.ConsumePartitions(place), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
}

func read(ctx context.Context, client *kgo.Client, count int) ([]*kgo.Record, error) {
	var found []*kgo.Record
	for len(found) < count {
		fetches := client.PollRecords(ctx, count-len(found))
		for _, failed := range fetches.Errors() {
			return nil, fmt.Errorf("%d of %d records came: %w", len(found), count, failed.Err)
		}
		found = append(found, fetches.Records()...)
	}
	return found, nil
}

func (d *driver) walk(ctx context.Context, asked request) (answer, error) {
	client, err := d.assign(asked, 0)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offsets := func(count int) ([]int64, error) {
		found, err := read(ctx, client, count)
		read := make([]int64, 0, count)
		for _, each := range found {
			read = append(read, each.Offset)
		}
		return read, err
	}
	first, err := offsets(10)
	if err != nil {
		return nil, err
	}
	client.SetOffsets(map[string]map[int32]kgo.EpochOffset{asked.Topic: {asked.Partition: {Epoch: -1, Offset: 3}}})
	sought, err := offsets(5)
	if err != nil {
		return nil, err
	}
	place := map[string][]int32{asked.Topic: {asked.Partition}}
	client.PauseFetchPartitions(place)
	quiet, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	paused := 0
	for quiet.Err() == nil { // a poll may come back before its time with nothing
		paused += client.PollRecords(quiet, 1).NumRecords()
	}
	client.ResumeFetchPartitions(place)
	resumed, err := offsets(5)
	return answer{"first": first, "sought": sought, "paused": paused, "resumed": resumed}, err
}
