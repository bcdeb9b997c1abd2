// Command bbolt is a store of bbolt for Tornpage: DIR/main.db, with its default settings, or with "sync=off"
// (NoSync), which promises less.
package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tornpage/stores/store"
)

var bucket = []byte("pairs")

type database struct{ db *bbolt.DB }

func open(folder string, settings []string) (store.Store, error) {
	options := *bbolt.DefaultOptions
	options.Timeout = time.Second
	options.NoSync = slices.Contains(settings, "sync=off")
	db, err := bbolt.Open(filepath.Join(folder, "main.db"), 0o644, &options)
	if err != nil {
		return nil, err
	}
	return database{db}, nil
}

func (d database) Commit(pairs map[string]string) error {
	return d.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		for _, key := range store.Sorted(pairs) {
			if err == nil {
				err = b.Put([]byte(key), []byte(pairs[key]))
			}
		}
		return err
	})
}

func (d database) Each(call func(key, value []byte, more string) error) error {
	return d.db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return fmt.Errorf("check: %w", err)
		}
		if b := tx.Bucket(bucket); b != nil {
			return b.ForEach(func(key, value []byte) error { return call(key, value, "") })
		}
		return nil
	})
}

func (d database) Get(key string) (value []byte, err error) {
	err = d.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucket); b != nil {
			value = bytes.Clone(b.Get([]byte(key)))
		}
		return nil
	})
	return value, err
}

func main() { store.Main(open) }
