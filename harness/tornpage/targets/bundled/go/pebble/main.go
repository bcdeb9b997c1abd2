// Command pebble is a store of Pebble for Tornpage, with synced commits, or with "sync=off" (NoSync), which
// promises less. Its memory for writes is small, so that tables are written and compacted.
package main

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble"

	"tornpage/stores/store"
)

const (
	memTableBytes = 64 << 10
	reopenedEvery = 10 // commits
)

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, arguments ...any) {
	pebble.DefaultLogger.Fatalf(format, arguments...)
}

type database struct {
	db      *pebble.DB
	folder  string
	write   *pebble.WriteOptions
	commits int
}

func open(folder string, settings []string) (store.Store, error) {
	d := &database{folder: folder, write: pebble.Sync}
	if slices.Contains(settings, "sync=off") {
		d.write = pebble.NoSync
	}
	return d, d.open()
}

func (d *database) open() error {
	options := &pebble.Options{MemTableSize: memTableBytes, L0CompactionThreshold: 1, Logger: quiet{}}
	db, err := pebble.Open(d.folder, options)
	d.db = db
	return err
}

func (d *database) Commit(pairs map[string]string) error {
	batch := d.db.NewBatch()
	for _, key := range store.Sorted(pairs) {
		if err := batch.Set([]byte(key), []byte(pairs[key]), nil); err != nil {
			return err
		}
	}
	if err := batch.Commit(d.write); err != nil {
		return err
	}
	d.commits++
	if d.commits%reopenedEvery != 0 {
		return nil
	}
	if err := d.db.Close(); err != nil {
		return err
	}
	return d.open()
}

func (d *database) Each(call func(key, value []byte, more string) error) error {
	pairs, err := d.db.NewIter(nil)
	if err != nil {
		return err
	}
	for pairs.First(); pairs.Valid(); pairs.Next() {
		if err = call(pairs.Key(), pairs.Value(), ""); err != nil {
			break
		}
	}
	if err == nil {
		err = pairs.Error()
	}
	if closed := pairs.Close(); err == nil {
		err = closed
	}
	return err
}

func (d *database) Get(key string) ([]byte, error) {
	value, closer, err := d.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(value), closer.Close()
}

func main() { store.Main(open) }
