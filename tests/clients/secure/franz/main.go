// franz-go, driven by lines; see child_drivers.py.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const wait = 8 * time.Second

var (
	options []kgo.Opt
	client  *kgo.Client
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		asked := map[string]string{}
		for _, word := range strings.Fields(lines.Text()) {
			key, value, _ := strings.Cut(word, "=")
			decoded, _ := hex.DecodeString(value)
			asked[key] = string(decoded)
		}
		word := "ok"
		said, err := answer(asked)
		if err != nil {
			word, said = "error", err.Error()
		}
		fmt.Println(word, hex.EncodeToString([]byte(said)))
	}
}

func answer(asked map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	switch asked["do"] {
	case "version":
		return version(), nil
	case "open":
		made, err := settings(asked)
		if err != nil {
			return "", err
		}
		options = made
		client, err = kgo.NewClient(options...)
		if err != nil {
			return "", err
		}
		return "", client.Ping(ctx)
	case "send":
		size, _ := strconv.Atoi(asked["size"])
		record := &kgo.Record{Topic: asked["topic"], Partition: 0, Value: make([]byte, size)}
		return "", client.ProduceSync(ctx, record).FirstErr()
	case "read":
		return read(ctx, asked["topic"])
	case "close":
		if client != nil {
			client.Close()
			client = nil
		}
		return "", nil
	}
	return "", errors.New(asked["do"])
}

func read(ctx context.Context, topic string) (string, error) {
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	consumer, err := kgo.NewClient(append(options[:len(options):len(options)], kgo.ConsumePartitions(from))...)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	fetches := consumer.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return "", err
	}
	return strconv.Itoa(len(fetches.Records()[0].Value)), nil
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "0"
}

func settings(asked map[string]string) ([]kgo.Opt, error) {
	made := []kgo.Opt{
		kgo.SeedBrokers(asked["servers"]), kgo.ClientID(asked["client_id"]), kgo.RetryTimeout(wait),
		kgo.RecordDeliveryTimeout(wait), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(1),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}
	if asked["ca"] != "" {
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		text, err := os.ReadFile(asked["ca"])
		if err != nil {
			return nil, err
		}
		config.RootCAs.AppendCertsFromPEM(text)
		if asked["pair"] != "" {
			pair, err := tls.LoadX509KeyPair(asked["pair"], asked["pair"])
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{pair}
		}
		made = append(made, kgo.DialTLSConfig(config))
	}
	if mechanism := login(asked); mechanism != nil {
		made = append(made, kgo.SASL(mechanism))
	}
	return made, nil
}

func login(asked map[string]string) sasl.Mechanism {
	switch asked["mechanism"] {
	case "PLAIN":
		return plain.Auth{User: asked["user"], Pass: asked["password"]}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: asked["user"], Pass: asked["password"]}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: asked["user"], Pass: asked["password"]}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := os.ReadFile(asked["token"])
			return oauth.Auth{Token: string(token)}, err
		})
	}
	return nil
}
