// A server of NATS JetStream, or the client that loads three of them, in one program: `./dev bench nats` builds and runs it.
//
//	nats-peer server ...   nats-server's own command line
//	nats-peer load URLS    reads a line for each piece of work and answers it with a line of JSON
//
//	create NAME STREAMS REPLICAS   streams NAME-0, NAME-1 ... in files; answers once all have a leader
//	publish NAME STREAMS RECORDS BYTES   asynchronously, each stream on a connection of its own: seconds until all are acknowledged
//	read NAME STREAMS RECORDS            all records of the streams, by an ordered consumer of each: seconds
//	single NAME SECONDS BYTES            one after the other to NAME-0, each after the answer to the one before: p50, p99
//	leader NAME                          name of the server that leads NAME-0
//	acked NAME                           publishes to NAME-0 until it is acknowledged: how often that was tried
//	count NAME STREAMS                   records in the streams
//	delete NAME STREAMS
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	inFlight   = 4000                   // records without an answer on each connection: the client's own default
	pull       = 5000                   // records that a consumer asks for ahead
	tryTimeout = 250 * time.Millisecond // of one record that is to be acknowledged after a kill
	apiTimeout = 5 * time.Second        // of one call that makes or describes a stream
	waitFor    = 60 * time.Second
)

type answer struct {
	Seconds float64 `json:"seconds,omitempty"`
	P50     float64 `json:"p50_ms,omitempty"`
	P99     float64 `json:"p99_ms,omitempty"`
	Count   int     `json:"count,omitempty"`
	Name    string  `json:"name,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func main() {
	if len(os.Args) >= 2 && os.Args[1] == "server" {
		serve(os.Args[2:])
		return
	}
	if len(os.Args) != 3 || os.Args[1] != "load" {
		fmt.Fprintln(os.Stderr, "usage: nats-peer server ... | load URLS")
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		found, err := work(os.Args[2], strings.Fields(lines.Text()))
		if err != nil {
			found.Error = err.Error()
		}
		if err := out.Encode(found); err != nil {
			os.Exit(1)
		}
	}
}

func serve(arguments []string) {
	flags := flag.NewFlagSet("nats-server", flag.ExitOnError)
	options, err := server.ConfigureOptions(flags, arguments, server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	made, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	made.ConfigureLogger()
	if err := server.Run(made); err != nil {
		server.PrintAndDie(err.Error())
	}
	made.WaitForShutdown()
}

func work(urls string, words []string) (answer, error) {
	var verb, name string
	numbers := make([]int, 3)
	fmt.Sscan(strings.Join(words, " "), &verb, &name, &numbers[0], &numbers[1], &numbers[2])
	connection, js, err := connect(urls)
	if err != nil {
		return answer{}, err
	}
	defer connection.Close()
	switch verb {
	case "create":
		return answer{}, create(js, name, numbers[0], numbers[1])
	case "publish":
		return publish(urls, name, numbers[0], numbers[1], numbers[2])
	case "read":
		return read(urls, name, numbers[0], numbers[1])
	case "single":
		return single(js, name, time.Duration(numbers[0])*time.Second, numbers[1])
	case "leader":
		return leader(js, name)
	case "acked":
		return acked(js, name)
	case "count":
		return count(js, name, numbers[0])
	case "delete":
		return answer{}, remove(js, name, numbers[0])
	}
	return answer{}, fmt.Errorf("no such work: %s", verb)
}

func connect(urls string) (*nats.Conn, jetstream.JetStream, error) {
	connection, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.RetryOnFailedConnect(true), nats.Timeout(time.Second))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(inFlight))
	return connection, js, err
}

func stream(name string, number int) string { return fmt.Sprintf("%s-%d", name, number) }

func create(js jetstream.JetStream, name string, streams, replicas int) error {
	return each(streams, func(i int) error {
		config := jetstream.StreamConfig{Name: stream(name, i), Subjects: []string{stream(name, i)}, Replicas: replicas,
			Storage: jetstream.FileStorage}
		return retry(apiTimeout, func(ctx context.Context) error {
			_, err := js.CreateOrUpdateStream(ctx, config)
			return err
		})
	})
}

func remove(js jetstream.JetStream, name string, streams int) error {
	return each(streams, func(i int) error {
		return retry(apiTimeout, func(ctx context.Context) error {
			err := js.DeleteStream(ctx, stream(name, i))
			if errors.Is(err, jetstream.ErrStreamNotFound) { // by a try whose answer was lost
				return nil
			}
			return err
		})
	})
}

func publish(urls, name string, streams, records, size int) (answer, error) {
	data := make([]byte, size)
	rand.Read(data)
	clients := make([]jetstream.JetStream, streams)
	for i := range clients {
		connection, js, err := connect(urls)
		if err != nil {
			return answer{}, err
		}
		defer connection.Close()
		if clients[i] = js; err == nil {
			_, err = js.Publish(context.Background(), stream(name, i), data) // connects, and finds the leader
		}
		if err != nil {
			return answer{}, err
		}
	}
	start := time.Now()
	err := each(streams, func(i int) error {
		futures := make([]jetstream.PubAckFuture, 0, records/streams)
		for range records / streams {
			future, err := clients[i].PublishAsync(stream(name, i), data, jetstream.WithStallWait(waitFor))
			if err != nil {
				return err
			}
			futures = append(futures, future)
		}
		for _, future := range futures {
			select {
			case <-future.Ok():
			case err := <-future.Err():
				return err
			case <-time.After(waitFor):
				return errors.New("no answer to a record")
			}
		}
		return nil
	})
	return answer{Seconds: time.Since(start).Seconds()}, err
}

func read(urls, name string, streams, records int) (answer, error) {
	start := time.Now()
	err := each(streams, func(i int) error {
		connection, js, err := connect(urls)
		if err != nil {
			return err
		}
		defer connection.Close()
		consumer, err := js.OrderedConsumer(context.Background(), stream(name, i), jetstream.OrderedConsumerConfig{})
		if err != nil {
			return err
		}
		messages, err := consumer.Messages(jetstream.PullMaxMessages(pull))
		if err != nil {
			return err
		}
		defer messages.Stop()
		for range records / streams {
			if _, err := messages.Next(); err != nil {
				return err
			}
		}
		return nil
	})
	return answer{Seconds: time.Since(start).Seconds()}, err
}

func single(js jetstream.JetStream, name string, length time.Duration, size int) (answer, error) {
	data := make([]byte, size)
	rand.Read(data)
	var times []float64
	for end := time.Now().Add(length); time.Now().Before(end); {
		start := time.Now()
		if _, err := js.Publish(context.Background(), stream(name, 0), data); err != nil {
			return answer{}, err
		}
		times = append(times, time.Since(start).Seconds()*1000)
	}
	sort.Float64s(times)
	return answer{P50: times[len(times)/2], P99: times[len(times)*99/100], Count: len(times)}, nil
}

func leader(js jetstream.JetStream, name string) (answer, error) {
	found := answer{}
	err := retry(apiTimeout, func(ctx context.Context) error {
		one, err := js.Stream(ctx, stream(name, 0))
		if err != nil {
			return err
		}
		cluster := one.CachedInfo().Cluster
		if cluster == nil || cluster.Leader == "" {
			return errors.New("no leader")
		}
		found.Name = cluster.Leader
		return nil
	})
	return found, err
}

func acked(js jetstream.JetStream, name string) (answer, error) {
	tries := 0
	err := retry(tryTimeout, func(ctx context.Context) error {
		tries++
		_, err := js.Publish(ctx, stream(name, 0), []byte("after"), jetstream.WithRetryAttempts(0))
		return err
	})
	return answer{Count: tries}, err
}

func count(js jetstream.JetStream, name string, streams int) (answer, error) {
	var lock sync.Mutex
	sum := 0
	err := each(streams, func(i int) error {
		return retry(apiTimeout, func(ctx context.Context) error {
			one, err := js.Stream(ctx, stream(name, i))
			if err == nil {
				lock.Lock()
				defer lock.Unlock()
				sum += int(one.CachedInfo().State.Msgs)
			}
			return err
		})
	})
	return answer{Count: sum}, err
}

// retry until it works, or for waitFor.
func retry(timeout time.Duration, do func(context.Context) error) error {
	for deadline := time.Now().Add(waitFor); ; {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		err := do(ctx)
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// each of so many at the same time; the first error, if any.
func each(number int, do func(int) error) error {
	found := make(chan error, number)
	for i := range number {
		go func() { found <- do(i) }()
	}
	var first error
	for range number {
		if err := <-found; err != nil && first == nil {
			first = err
		}
	}
	return first
}
