package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// request is one command with the arguments of all commands. Bytes come as base64 or null, times in ms.
type request struct {
	Do          string
	Topic       string
	Partition   int32
	Group       string
	Acks        string
	Compression string
	Idempotent  bool
	Records     []record
	Offset      int64
	Count       int
	Metadata    string
	Ms          int64
	Partitions  int32
	Total       int
	Configs     map[string]string
	Config      string
	Before      int64
}

// record is one record to produce, or one that was read; a timestamp of 0 to produce means now.
type record struct {
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

// header is a list of two in a line: its name, its value.
type header struct {
	name  string
	value []byte
}

func (h header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.name, h.value})
}

func (h *header) UnmarshalJSON(line []byte) error {
	return json.Unmarshal(line, &[]any{&h.name, &h.value})
}

// options is what a member is told. Session: ms. Instance: its group.instance.id, or "".
type options struct {
	Bootstrap string
	Topic     string
	Group     string
	Session   int64
	Instance  string
	Strategy  string
	Protocol  string
}

func readOptions(line string) (options, error) {
	asked := options{Session: 6000, Strategy: "range", Protocol: "classic"}
	err := json.Unmarshal([]byte(line), &asked)
	return asked, err
}

// answer is one line to whoever asked.
type answer map[string]any

// errUnsupported says that the client has no such feature at all.
var errUnsupported = errors.New("unsupported")

var telling sync.Mutex

const clockMonotonic = 1 // of Linux

// now is the time in seconds on the clock that all processes of the machine share; the one of time.Now stays hidden.
func now() float64 {
	var at syscall.Timespec
	_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	if failed != 0 {
		panic(failed) // every Linux has this clock
	}
	return float64(at.Nano()) / 1e9
}

// tell writes one line, at once, with its time.
func tell(what answer) {
	telling.Lock()
	defer telling.Unlock()
	what["at"] = now()
	line, err := json.Marshal(what)
	if err != nil {
		panic(err) // only a mistake in this program can make an answer that is no JSON
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "nobody listens:", err)
		os.Exit(1)
	}
}

// answerAll carries out commands until the input ends; name says what an error is called.
func answerAll(input io.Reader, carryOut func(request) (answer, error), name func(error) string) error {
	lines := json.NewDecoder(input)
	for {
		var asked request
		if err := lines.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		done, err := carryOut(asked)
		switch {
		case errors.Is(err, errUnsupported):
			tell(answer{"error": errUnsupported.Error()})
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s: %v\n", asked.Do, err)
			tell(answer{"error": name(err)})
		default:
			tell(answer{"ok": done})
		}
	}
}
