// One cell of the matrix of clients with sarama, Go's most used client: sarama <servers> <topic> <cell>.
// It ends with 0 if the cell works.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const wait = 30 * time.Second

var (
	start  = time.UnixMilli(1_700_000_000_000)
	values = []string{"zero", "one", "two"}

	laterBy = []time.Duration{0, 200 * time.Millisecond, 100 * time.Millisecond}
)

type place struct {
	servers []string
	topic   string
	config  *sarama.Config
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func equal(got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		must(fmt.Errorf("got %v, want %v", got, want))
	}
}

// produce sends the values in one batch, at start, start + 200 ms and start + 100 ms.
func produce(at place) {
	at.config.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer(at.servers, at.config)
	must(err)
	var messages []*sarama.ProducerMessage
	for number, value := range values {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: at.topic, Key: sarama.StringEncoder("key"), Value: sarama.StringEncoder(value),
			Headers:   []sarama.RecordHeader{{Key: []byte("header"), Value: []byte("h")}},
			Timestamp: start.Add(laterBy[number]),
		})
	}
	must(producer.SendMessages(messages))
	must(producer.Close())
}

// produceToAll is for what reads below the high watermark at once; by default only the leader acknowledges.
func produceToAll(at place) {
	at.config.Producer.RequiredAcks = sarama.WaitForAll
	produce(at)
}

func consume(at place, offset int64, want []string) {
	consumer, err := sarama.NewConsumer(at.servers, at.config)
	must(err)
	partition, err := consumer.ConsumePartition(at.topic, 0, offset)
	must(err)
	for _, value := range want {
		select {
		case message := <-partition.Messages():
			equal(string(message.Value), value)
			equal(string(message.Key), "key")
			equal(string(message.Headers[0].Value), "h")
			equal(message.Timestamp.Before(start), false)
		case <-time.After(wait):
			must(fmt.Errorf("no message with %q", value))
		}
	}
	must(partition.Close())
	must(consumer.Close())
}

func both(at place) {
	produce(at)
	consume(at, sarama.OffsetOldest, values)
}

func compressed(codec sarama.CompressionCodec) func(place) {
	return func(at place) {
		at.config.Producer.Compression = codec
		both(at)
	}
}

func metadata(at place) {
	client, err := sarama.NewClient(at.servers, at.config)
	must(err)
	equal(len(client.Brokers()), 3)
	partitions, err := client.Partitions(at.topic)
	must(err)
	equal(partitions, []int32{0})
	must(client.Close())
}

func createTopic(at place) {
	admin, err := sarama.NewClusterAdmin(at.servers, at.config)
	must(err)
	name := at.topic + "-made"
	must(admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 3}, false))
	must(admin.DeleteTopic(name))
	must(admin.Close())
}

func idempotent(at place) {
	at.config.Producer.Idempotent = true
	at.config.Producer.RequiredAcks = sarama.WaitForAll
	at.config.Net.MaxOpenRequests = 1
	both(at)
}

func noAcks(at place) {
	at.config.Producer.RequiredAcks = sarama.NoResponse
	both(at)
}

func offsets(at place, times map[int64]int64) {
	produceToAll(at)
	client, err := sarama.NewClient(at.servers, at.config)
	must(err)
	for asked, want := range times {
		found, err := client.GetOffset(at.topic, 0, asked)
		must(err)
		equal(found, want)
	}
	must(client.Close())
}

func ends(at place) {
	offsets(at, map[int64]int64{sarama.OffsetOldest: 0, sarama.OffsetNewest: 3})
}

func byTime(at place) {
	first := start.UnixMilli()
	offsets(at, map[int64]int64{first: 0, first + 1: 1, first + 150: 1, first + 201: -1})
}

type members struct {
	found []string
	ready context.CancelFunc
}

func (*members) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*members) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (all *members) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			all.found = append(all.found, string(message.Value))
			session.MarkMessage(message, "")
			if len(all.found) == len(values) {
				session.Commit()
				all.ready()
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

// group commits what it has read; a second life of the group goes on behind it.
func group(at place) {
	at.config.Consumer.Offsets.Initial = sarama.OffsetOldest
	for range 2 {
		produce(at)
		consumer, err := sarama.NewConsumerGroup(at.servers, at.topic, at.config)
		must(err)
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		all := &members{ready: cancel}
		must(consumer.Consume(ctx, []string{at.topic}, all))
		cancel()
		equal(all.found, values)
		must(consumer.Close())
	}
}

var cells = map[string]func(place){
	"metadata": metadata, "create topic": createTopic, "produce": both, "idempotent": idempotent, "no acks": noAcks,
	"gzip": compressed(sarama.CompressionGZIP), "snappy": compressed(sarama.CompressionSnappy),
	"lz4": compressed(sarama.CompressionLZ4), "zstd": compressed(sarama.CompressionZSTD),
	"seek": func(at place) { produceToAll(at); consume(at, 1, values[1:]) },
	"ends": ends, "by time": byTime, "group": group,
}

func main() {
	config := sarama.NewConfig()
	config.Producer.Flush.Messages = len(values) // so that they are one batch
	config.Producer.Flush.Frequency = 200 * time.Millisecond
	cells[os.Args[3]](place{strings.Split(os.Args[1], ","), os.Args[2], config})
}
