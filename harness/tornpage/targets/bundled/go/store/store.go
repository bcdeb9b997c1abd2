// Package store is what the Go programs of bundled targets share: the work, the marks of a run, and the answers
// of a recovery.
//
//	PROGRAM run DIR [SETTING ...]
//	PROGRAM recover
//
// A program is linked statically and makes its own system calls, so tornpage-fs records it, and marks go through
// a socket.
package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
)

const (
	commits = 40
	keys    = 6 // of one commit
)

// Store has keys and values.
type Store interface {
	// Commit makes all these pairs durable at once.
	Commit(pairs map[string]string) error
	// Each calls for every pair, with what else is known of it.
	Each(call func(key, value []byte, more string) error) error
	// Get is the value of a key, nil if it is not there.
	Get(key string) ([]byte, error)
}

// Opener opens a store in a folder, as after a crash. settings: words of the command line.
type Opener func(folder string, settings []string) (Store, error)

// Main is a program. It never closes a store: a run ends as a kill would end it.
func Main(open Opener) {
	var err error
	switch {
	case len(os.Args) >= 3 && os.Args[1] == "run":
		err = run(open, os.Args[2], os.Args[3:])
	case len(os.Args) == 2 && os.Args[1] == "recover":
		err = recoverEach(open)
	default:
		err = errors.New("run DIR [SETTING ...], or recover")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run commits several pairs, again and again. Values grow, so that commits make files grow.
func run(open Opener, folder string, settings []string) error {
	store, err := open(folder, settings)
	if err != nil {
		return err
	}
	if err = tell(store, 0, "ready"); err != nil {
		return err
	}
	for number := 1; number <= commits; number++ {
		if err = mark(fmt.Sprintf("issue n=%d", number)); err != nil {
			return err
		}
		pairs := map[string]string{}
		for place := 0; place < keys; place++ {
			pairs[keyOf(number*5+place*3)] = fmt.Sprintf("%08d", number) + strings.Repeat("x", number*40+place)
		}
		if err = store.Commit(pairs); err != nil {
			return fmt.Errorf("commit %d: %w", number, err)
		}
		if err = tell(store, number, fmt.Sprintf("ack n=%d", number)); err != nil {
			return err
		}
	}
	return nil
}

func keyOf(number int) string {
	return fmt.Sprintf("key%02d", number%commits)
}

// tell prints the state behind a commit, then marks it.
func tell(store Store, number int, text string) error {
	state, err := stateOf(store)
	if err != nil {
		return err
	}
	if err = say(map[string]any{"n": number, "state": state}); err != nil {
		return err
	}
	return mark(text)
}

// stateOf is a line for each pair: of a value its beginning, which says of which commit it is, its length and
// its checksum. A key of the work that is asked for is found as a walk finds it: else a line says so, which no
// state of a run has.
func stateOf(store Store) (map[string]string, error) {
	var lines []string
	walked := map[string]string{}
	err := store.Each(func(key, value []byte, more string) error {
		begin := value[:min(8, len(value))]
		sum := crc32.ChecksumIEEE(value)
		lines = append(lines, fmt.Sprintf("%q %q %d %08x\n", string(key)+more, begin, len(value), sum))
		walked[string(key)] = string(value)
		return nil
	})
	for number := 0; number < commits && err == nil; number++ {
		var found []byte
		found, err = store.Get(keyOf(number))
		if value, met := walked[keyOf(number)]; met != (found != nil) || value != string(found) {
			lines = append(lines, fmt.Sprintf("%q is another when it is asked for\n", keyOf(number)))
		}
	}
	slices.Sort(lines)
	return map[string]string{"pairs": strings.Join(lines, "")}, err
}

// Sorted has the keys in their order.
func Sorted(pairs map[string]string) []string {
	return slices.Sorted(maps.Keys(pairs))
}

func say(line any) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = os.Stdout.Write(append(text, '\n'))
	}
	return err
}

// mark is answered when the mark is in the recorded stream. Without a recorder it does nothing.
func mark(text string) error {
	name := os.Getenv("TORNPAGE_CONTROL")
	if name == "" {
		return nil
	}
	socket, err := net.Dial("unix", "@"+name)
	if err != nil {
		return err
	}
	defer socket.Close()
	if _, err = fmt.Fprintf(socket, "%s\n", text); err != nil {
		return err
	}
	answer := make([]byte, 3)
	_, err = io.ReadFull(socket, answer)
	return err
}

// recoverEach answers for each folder whose path is a line of standard input.
func recoverEach(open Opener) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := say(recovered(open, lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

func recovered(open Opener, folder string) map[string]any {
	refused := func(err error) map[string]any {
		return map[string]any{"ok": false, "message": strings.ReplaceAll(err.Error(), folder, "DIR")}
	}
	store, err := open(folder, nil)
	if err != nil {
		return refused(err)
	}
	state, err := stateOf(store)
	if err != nil {
		return refused(err)
	}
	return map[string]any{"ok": true, "state": state}
}
