// The driver of Sarama: `serve BOOTSTRAP` or `member JSON`, as clients/README.md says.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const patience = 30 * time.Second // for one command

func main() {
	err := run(os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errUnsupported) {
		os.Exit(3)
	}
	os.Exit(1)
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("wanted: serve BOOTSTRAP, or member JSON")
	}
	if err := readSecurity(); err != nil {
		return err
	}
	switch arguments[0] {
	case "serve":
		return serve(arguments[1])
	case "member":
		asked, err := readOptions(arguments[1])
		if err != nil {
			return err
		}
		return takePart(asked)
	}
	return fmt.Errorf("neither serve nor member: %s", arguments[0])
}

// driver carries out commands. Producers and consumers live for one command; admin and its client for all of them.
type driver struct {
	bootstrap []string
	client    sarama.Client
	admin     sarama.ClusterAdmin
}

type command func(*driver, request) (answer, error)

var commands = map[string]command{
	"describe":        (*driver).describe,
	"produce":         (*driver).produce,
	"consume":         (*driver).consume,
	"walk":            (*driver).walk,
	"commit":          (*driver).commit,
	"committed":       (*driver).committed,
	"offset_for_time": (*driver).offsetForTime,
	"list_groups":     (*driver).listGroups,
	"describe_group":  (*driver).describeGroup,
	"delete_group":    (*driver).deleteGroup,
	"create_topic":    (*driver).createTopic,
	"alter_topic":     (*driver).alterTopic,
	"topic":           (*driver).topic,
	"add_partitions":  (*driver).addPartitions,
	"delete_records":  (*driver).deleteRecords,
	"delete_topic":    (*driver).deleteTopic,
}

func serve(bootstrap string) error {
	addresses := strings.Split(bootstrap, ",")
	client, err := sarama.NewClient(addresses, settings())
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	d := &driver{bootstrap: addresses, client: client, admin: admin}
	carryOut := func(asked request) (answer, error) {
		do, ok := commands[asked.Do]
		if !ok {
			return nil, errUnsupported
		}
		return do(d, asked)
	}
	return errors.Join(answerAll(os.Stdin, carryOut, errorName), admin.Close())
}

// settings are those of all clients: the newest protocol Sarama has, and patience with a broker that restarts.
func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.MaxWaitTime = 100 * time.Millisecond // heartbeats and joins stand behind a fetch on their connection
	config.Metadata.RefreshFrequency = time.Second
	config.Metadata.Retry.Max = 50
	config.Metadata.Retry.Backoff = 200 * time.Millisecond
	config.Admin.Retry.Max = 50
	config.Admin.Retry.Backoff = 200 * time.Millisecond
	config.Admin.Timeout = patience
	secure(config)
	return config
}

// describe tells the version that was linked in.
func (d *driver) describe(request) (answer, error) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("this program was built without its modules' versions")
	}
	for _, module := range build.Deps {
		if module.Path == "github.com/IBM/sarama" {
			return answer{"client": "Sarama", "version": module.Version}, nil
		}
	}
	return nil, errors.New("Sarama is not linked in")
}
