package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// largestBatch is Kafka's default of max.message.bytes.
const largestBatch = 1_048_588

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}

func (d *driver) produce(asked request) (answer, error) {
	config := settings()
	config.Producer.RequiredAcks = acks[asked.Acks]
	config.Producer.Compression = codecs[asked.Compression]
	config.Producer.Idempotent = asked.Idempotent
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.MaxMessageBytes = largestBatch
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1 // in order even where something is sent again
	producer, err := sarama.NewSyncProducer(d.bootstrap, config)
	if err != nil {
		return nil, err
	}
	sent := make([]*sarama.ProducerMessage, 0, len(asked.Records))
	for _, each := range asked.Records {
		sent = append(sent, each.toSend(asked.Topic, asked.Partition))
	}
	err = producer.SendMessages(sent)
	if failed := (sarama.ProducerErrors)(nil); errors.As(err, &failed) {
		err = failed[0].Err
	}
	return answer{"count": len(sent)}, errors.Join(err, producer.Close())
}

func (r record) toSend(topic string, partition int32) *sarama.ProducerMessage {
	sent := &sarama.ProducerMessage{Topic: topic, Partition: partition, Key: encoder(r.Key), Value: encoder(r.Value)}
	if r.Timestamp != 0 {
		sent.Timestamp = time.UnixMilli(r.Timestamp)
	}
	for _, each := range r.Headers {
		sent.Headers = append(sent.Headers, sarama.RecordHeader{Key: []byte(each.name), Value: each.value})
	}
	return sent
}

// encoder keeps null apart from empty, which a ByteEncoder of nil would not.
func encoder(data []byte) sarama.Encoder {
	if data == nil {
		return nil
	}
	return sarama.ByteEncoder(data)
}

// reader is a consumer of one partition.
type reader struct {
	consumer sarama.Consumer
	sarama.PartitionConsumer
}

// open reads from an offset on, or from the log's start if that is later: Sarama refuses offsets below the start before
// it asks, where a broker gives the first record there is, and not every log begins at 0.
func (d *driver) open(asked request, offset int64) (*reader, error) {
	start, err := d.client.GetOffset(asked.Topic, asked.Partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	config := settings()
	config.Consumer.Return.Errors = true
	consumer, err := sarama.NewConsumer(d.bootstrap, config)
	if err != nil {
		return nil, err
	}
	partition, err := consumer.ConsumePartition(asked.Topic, asked.Partition, max(offset, start))
	if err != nil {
		return nil, errors.Join(err, consumer.Close())
	}
	return &reader{consumer, partition}, nil
}

func (r *reader) Close() error {
	return errors.Join(r.PartitionConsumer.Close(), r.consumer.Close())
}

func (r *reader) read(count int) ([]*sarama.ConsumerMessage, error) {
	var found []*sarama.ConsumerMessage
	late := time.After(patience)
	for len(found) < count {
		select {
		case message := <-r.Messages():
			found = append(found, message)
		case failed := <-r.Errors():
			return nil, failed
		case <-late:
			return nil, fmt.Errorf("%d of %d records came", len(found), count)
		}
	}
	return found, nil
}

func (d *driver) consume(asked request) (answer, error) {
	from, err := d.open(asked, asked.Offset)
	if err != nil {
		return nil, err
	}
	found, err := from.read(asked.Count)
	records := make([]record, 0, len(found))
	for _, each := range found {
		one := record{each.Offset, each.Timestamp.UnixMilli(), each.Key, each.Value, []header{}}
		for _, pair := range each.Headers {
			one.Headers = append(one.Headers, header{string(pair.Key), pair.Value})
		}
		records = append(records, one)
	}
	return answer{"records": records}, errors.Join(err, from.Close())
}
