// The driver of franz-go: `serve BOOTSTRAP` or `member JSON`, as clients/README.md says.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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

// driver carries out commands. Producers and consumers live for one command; admin for all of them.
type driver struct {
	bootstrap string
	admin     *kadm.Client
}

type command func(*driver, context.Context, request) (answer, error)

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
	"set_quota":       (*driver).setQuota,
}

func serve(bootstrap string) error {
	d := &driver{bootstrap: bootstrap}
	client, err := d.open()
	if err != nil {
		return err
	}
	defer client.Close()
	d.admin = kadm.NewClient(client)
	carryOut := func(asked request) (answer, error) {
		do, ok := commands[asked.Do]
		if !ok {
			return nil, errUnsupported
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return do(d, ctx, asked)
	}
	return answerAll(os.Stdin, carryOut, errorName)
}

// open makes a client that is patient with a broker that restarts.
func (d *driver) open(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(connection(d.bootstrap), more...)...)
}

func connection(bootstrap string) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 200 * time.Millisecond }),
	}, secured...)
}

// describe tells the version that was linked in.
func (d *driver) describe(context.Context, request) (answer, error) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("this program was built without its modules' versions")
	}
	for _, module := range build.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return answer{"client": "franz-go", "version": module.Version}, nil
		}
	}
	return nil, errors.New("franz-go is not linked in")
}

// errorName is Kafka's name of an error of the broker, or the client's words.
func errorName(err error) string {
	if known := (*kerr.Error)(nil); errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}
