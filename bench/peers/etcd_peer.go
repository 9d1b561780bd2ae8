// A member of etcd, or the client that loads three of them, in one program: `./dev bench metadata` builds and runs it.
//
//	etcd-peer server ...   etcd's own command line
//	etcd-peer load         reads lines "clients seconds" and answers each with a line of JSON
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

const maxConnections = 16 // of all clients together, each to the leader

type answer struct {
	Changes int     `json:"changes"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

func main() {
	if len(os.Args) < 2 || (os.Args[1] != "server" && os.Args[1] != "load") {
		fmt.Fprintln(os.Stderr, "usage: etcd-peer server|load ...")
		os.Exit(2)
	}
	if os.Args[1] == "server" {
		etcdmain.Main(append([]string{"etcd"}, os.Args[2:]...))
		return
	}
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	endpoints := flags.String("endpoints", "", "host:port,...")
	valueBytes := flags.Int("bytes", 200, "of each value")
	flags.Parse(os.Args[2:])
	if err := serve(strings.Split(*endpoints, ","), *valueBytes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(endpoints []string, valueBytes int) error {
	leader, err := findLeader(endpoints)
	if err != nil {
		return err
	}
	connections := make([]*clientv3.Client, maxConnections)
	for i := range connections {
		if connections[i], err = connect(leader); err != nil {
			return err
		}
		defer connections[i].Close()
	}
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var clients int
		var seconds float64
		if _, err := fmt.Sscan(lines.Text(), &clients, &seconds); err != nil {
			return err
		}
		found, err := load(connections, clients, seconds, valueBytes)
		if err != nil {
			return err
		}
		if err := out.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func connect(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
}

func findLeader(endpoints []string) (string, error) {
	for _, endpoint := range endpoints {
		client, err := connect(endpoint)
		if err != nil {
			return "", err
		}
		status, err := client.Status(context.Background(), endpoint)
		client.Close()
		if err == nil && status.Leader == status.Header.MemberId {
			return endpoint, nil
		}
	}
	return "", fmt.Errorf("none of %v leads", endpoints)
}

// load runs clients that each put one value after the other to a key of its own.
func load(connections []*clientv3.Client, clients int, seconds float64, valueBytes int) (answer, error) {
	value := strings.Repeat("v", valueBytes)
	latencies := make([][]float64, clients)
	errs := make([]error, clients)
	begin := time.Now()
	end := begin.Add(time.Duration(seconds * float64(time.Second)))
	var all sync.WaitGroup
	for i := 0; i < clients; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			key := fmt.Sprintf("client-%03d", i)
			for sent := time.Now(); sent.Before(end); {
				if _, err := connections[i%len(connections)].Put(context.Background(), key, value); err != nil {
					errs[i] = err
					return
				}
				now := time.Now()
				latencies[i] = append(latencies[i], now.Sub(sent).Seconds()*1000)
				sent = now
			}
		}(i)
	}
	all.Wait()
	took := time.Since(begin).Seconds()
	var merged []float64
	for i, found := range latencies {
		if errs[i] != nil {
			return answer{}, errs[i]
		}
		merged = append(merged, found...)
	}
	sort.Float64s(merged)
	at := func(share float64) float64 { return merged[min(len(merged)-1, int(share*float64(len(merged))))] }
	return answer{Changes: len(merged), Seconds: took, P50: at(0.5), P99: at(0.99)}, nil
}
