// Command etcd is a server of etcd with one member, for Tornpage, asked by a client in its process, with its
// default settings but for sizes: its log is cut, its snapshots are taken, its history is compacted and its
// backend defragmented within the work. "sync=off" (unsafe-no-fsync) promises less.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/wal"

	"tornpage/stores/store"
)

const (
	segmentBytes   = 64 << 10
	snapshotEvery  = 10 // entries of the log
	batch          = 4  // changes of a transaction of the backend
	compactedEvery = 8  // commits
	defragEvery    = 13 // commits
	name           = "one"
)

type database struct {
	server  *etcdserver.EtcdServer
	client  *clientv3.Client
	commits int
}

func open(folder string, settings []string) (store.Store, error) {
	wal.SegmentSizeBytes = segmentBytes
	if err := os.Chmod(folder, 0o700); err != nil {
		return nil, err
	}
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Name, config.Dir = name, folder
	config.ListenPeerUrls, config.AdvertisePeerUrls = anywhere, anywhere
	config.ListenClientUrls, config.AdvertiseClientUrls = anywhere, anywhere
	config.InitialCluster = config.InitialClusterFromName(name)
	config.TickMs, config.ElectionMs = 2, 20
	config.SnapshotCount, config.BackendBatchLimit = snapshotEvery, batch
	config.UnsafeNoFsync = slices.Contains(settings, "sync=off")
	config.LogLevel = "fatal"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return &database{server: server.Server, client: v3client.New(server.Server)}, nil
	case err = <-server.Err():
		return nil, err
	}
}

func (d *database) Commit(pairs map[string]string) error {
	var puts []clientv3.Op
	for _, key := range store.Sorted(pairs) {
		puts = append(puts, clientv3.OpPut(key, pairs[key]))
	}
	done, err := d.client.Txn(context.Background()).Then(puts...).Commit()
	if err != nil {
		return err
	}
	d.commits++
	if d.commits%compactedEvery == 0 {
		_, err = d.client.Compact(context.Background(), done.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil && d.commits%defragEvery == 0 {
		err = d.server.Backend().Defrag()
	}
	return err
}

// Each has the revisions too, which clients watch and compare by.
func (d *database) Each(call func(key, value []byte, more string) error) error {
	found, err := d.client.Get(context.Background(), "", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, pair := range found.Kvs {
		revisions := fmt.Sprintf(" %d %d %d", pair.CreateRevision, pair.ModRevision, pair.Version)
		if err = call(pair.Key, pair.Value, revisions); err != nil {
			return err
		}
	}
	return call([]byte("revision"), []byte(fmt.Sprint(found.Header.Revision)), "")
}

func (d *database) Get(key string) ([]byte, error) {
	found, err := d.client.Get(context.Background(), key)
	if err != nil || len(found.Kvs) == 0 {
		return nil, err
	}
	return found.Kvs[0].Value, nil
}

func main() { store.Main(open) }
