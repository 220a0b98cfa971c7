package main

import (
	"errors"

	"github.com/IBM/sarama"
)

// names are Kafka's for the errors that scenarios ask for; Sarama has only sentences.
var names = map[sarama.KError]string{
	sarama.ErrOffsetOutOfRange:        "OFFSET_OUT_OF_RANGE",
	sarama.ErrInvalidMessage:          "CORRUPT_MESSAGE",
	sarama.ErrUnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION",
	sarama.ErrMessageSizeTooLarge:     "MESSAGE_TOO_LARGE",
	sarama.ErrOffsetMetadataTooLarge:  "OFFSET_METADATA_TOO_LARGE",
	sarama.ErrIllegalGeneration:       "ILLEGAL_GENERATION",
	sarama.ErrUnknownMemberId:         "UNKNOWN_MEMBER_ID",
	sarama.ErrInvalidSessionTimeout:   "INVALID_SESSION_TIMEOUT",
	sarama.ErrRebalanceInProgress:     "REBALANCE_IN_PROGRESS",
	sarama.ErrTopicAlreadyExists:      "TOPIC_ALREADY_EXISTS",
	sarama.ErrInvalidPartitions:       "INVALID_PARTITIONS",
	sarama.ErrInvalidConfig:           "INVALID_CONFIG",
	sarama.ErrInvalidRequest:          "INVALID_REQUEST",
	sarama.ErrInvalidTopic:            "INVALID_TOPIC_EXCEPTION",
	sarama.ErrUnsupportedVersion:      "UNSUPPORTED_VERSION",
	sarama.ErrNonEmptyGroup:           "NON_EMPTY_GROUP",
	sarama.ErrGroupIDNotFound:         "GROUP_ID_NOT_FOUND",
	sarama.ErrMemberIdRequired:        "MEMBER_ID_REQUIRED",
	sarama.ErrGroupMaxSizeReached:     "GROUP_MAX_SIZE_REACHED",
	sarama.ErrFencedInstancedId:       "FENCED_INSTANCE_ID",
}

// errorName is Kafka's name of an error of the broker, or the client's words.
func errorName(err error) string {
	if code := sarama.KError(0); errors.As(err, &code) && names[code] != "" {
		return names[code]
	}
	return err.Error()
}
