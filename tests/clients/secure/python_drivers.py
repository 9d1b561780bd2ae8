"""The three clients in Python, in the tests' own process."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaError, Producer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider
from logins import Failed, Login
from security_matrix import ANSWER_S

WAIT_S = ANSWER_S - 2  # so that an error comes in time
WAIT_MS = int(WAIT_S * 1000)
AT_ONCE = (KafkaError._AUTHENTICATION, KafkaError._SSL)  # librdkafka goes on trying


class Told(logging.Handler):
    """What a library logs: some say only there why they could not connect."""

    def __init__(self, library: str) -> None:
        super().__init__(logging.WARNING)
        self._logger, self.lines = logging.getLogger(library), list[str]()
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def end(self) -> None:
        self._logger.removeHandler(self)

    def failing(self, call: Callable[[], Any]) -> Any:
        """Its errors are Failed, with what was logged meanwhile."""
        self.lines.clear()
        try:
            return call()
        except Exception as error:  # each library has its own classes, and a cell asks for words
            raise Failed("; ".join([f"{type(error).__name__}: {error}", *dict.fromkeys(self.lines)])) from error


class Confluent:
    def version(self) -> str:
        return str(confluent_kafka.__version__)

    def open(self, login: Login) -> ConfluentSession:
        return ConfluentSession(login)

    def close(self) -> None: ...


class ConfluentSession:
    def __init__(self, login: Login) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": login.servers, "security.protocol": login.protocol, "client.id": login.client_id,
            "message.timeout.ms": login.wait_ms, "log_level": 0, "error_cb": self._on_error,
            "topic.metadata.refresh.interval.ms": 1000,
        }  # fmt: skip
        if login.ca:
            self._settings["ssl.ca.location"] = login.ca
        if login.pair:
            self._settings |= {"ssl.certificate.location": login.pair, "ssl.key.location": login.pair}
        if login.token:
            self._settings |= {
                "sasl.mechanism": login.mechanism,
                "oauth_cb": lambda _: (login.read_token(), time.time() + 3600),
            }
        elif login.mechanism:
            self._settings |= {
                "sasl.mechanism": login.mechanism, "sasl.username": login.user, "sasl.password": login.password
            }  # fmt: skip
        self._told: list[KafkaError] = []
        self._producer = Producer(self._settings)

    def _on_error(self, error: KafkaError) -> None:
        self._told.append(error)

    def send(self, topic: str, size: int) -> None:
        delivered: list[KafkaError | None] = []
        self._told.clear()
        self._producer.produce(topic, bytes(size), partition=0, on_delivery=lambda error, _: delivered.append(error))
        while not delivered:
            self._producer.poll(0.05)
            if any(error.code() in AT_ONCE for error in self._told):
                self._producer.purge()
                break
        failed = [error for error in delivered if error is not None]
        if failed or not delivered:
            raise Failed("; ".join(sorted({error.str() for error in (*self._told, *failed)})))

    def read(self, topic: str) -> int:
        settings = {key: value for key, value in self._settings.items() if key != "message.timeout.ms"}
        consumer = confluent_kafka.Consumer({**settings, "group.id": "none", "auto.offset.reset": "earliest"})
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
            found = consumer.poll(WAIT_S)
            if found is None or found.error():
                raise Failed(str(found and found.error()))
            return len(found.value())
        finally:
            consumer.close()

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)


class _FileOfKafkaPython(KafkaPythonTokenProvider):  # type: ignore[misc]  # ships no types
    def __init__(self, login: Login) -> None:
        super().__init__()
        self._login = login

    def token(self) -> str:
        return self._login.read_token()


class KafkaPython:
    def __init__(self) -> None:
        self._told = Told("kafka")

    def version(self) -> str:
        return str(kafka.__version__)

    def open(self, login: Login) -> KafkaPythonSession:
        return KafkaPythonSession(login, self._told.failing)

    def close(self) -> None:
        self._told.end()


class KafkaPythonSession:
    """It sends the name of SCRAM as it stands, so who uses it escapes it."""

    def __init__(self, login: Login, failing: Callable[[Callable[[], Any]], Any]) -> None:
        self._failing = failing
        self._settings: dict[str, Any] = {
            "bootstrap_servers": login.servers, "security_protocol": login.protocol, "client_id": login.client_id,
        }  # fmt: skip
        if login.ca:
            self._settings["ssl_cafile"] = login.ca
        if login.pair:
            self._settings |= {"ssl_certfile": login.pair, "ssl_keyfile": login.pair}
        if login.token:
            self._settings |= {
                "sasl_mechanism": login.mechanism, "sasl_oauth_token_provider": _FileOfKafkaPython(login)
            }  # fmt: skip
        elif login.mechanism:
            self._settings |= {
                "sasl_mechanism": login.mechanism, "sasl_plain_username": login.escaped_user,
                "sasl_plain_password": login.password,
            }  # fmt: skip
        self._producer = self._failing(
            lambda: kafka.KafkaProducer(
                **self._settings,
                bootstrap_timeout_ms=login.wait_ms,
                max_block_ms=login.wait_ms,
                request_timeout_ms=login.wait_ms - 500,
                delivery_timeout_ms=login.wait_ms,
            )
        )

    def send(self, topic: str, size: int) -> None:
        self._failing(lambda: self._producer.send(topic, bytes(size), partition=0).get(WAIT_S))

    def read(self, topic: str) -> int:
        def one() -> int:
            consumer = kafka.KafkaConsumer(**self._settings, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS)
            try:
                consumer.assign([kafka.TopicPartition(topic, 0)])
                return len(next(consumer).value)
            finally:
                consumer.close()

        return int(self._failing(one))

    def close(self) -> None:
        self._producer.close(timeout=1)


class _FileOfAiokafka(AbstractTokenProvider):  # type: ignore[misc]  # ships no types
    def __init__(self, login: Login) -> None:
        self._login = login

    async def token(self) -> str:
        return self._login.read_token()


class Aiokafka:
    """Its loop runs while a call of the test's does."""

    def __init__(self) -> None:
        self._told = Told("aiokafka")
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # what it leaves behind where it could not log in

    def version(self) -> str:
        return str(aiokafka.__version__)

    def open(self, login: Login) -> AiokafkaSession:
        return AiokafkaSession(login, self._do)

    def _do(self, work: Awaitable[Any]) -> Any:
        async def within() -> Any:
            async with asyncio.timeout(WAIT_S):
                return await work

        return self._told.failing(lambda: self._loop.run_until_complete(within()))

    def close(self) -> None:
        self._loop.close()
        self._told.end()


class AiokafkaSession:
    def __init__(self, login: Login, do: Callable[[Awaitable[Any]], Any]) -> None:
        self._do = do
        self._settings: dict[str, Any] = {
            "bootstrap_servers": login.servers, "security_protocol": login.protocol, "client_id": login.client_id,
            "request_timeout_ms": login.wait_ms - 500,
        }  # fmt: skip
        if login.ca:
            context = ssl.create_default_context(cafile=login.ca)
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as the other clients do
            if login.pair:
                context.load_cert_chain(login.pair)
            self._settings["ssl_context"] = context
        if login.token:
            self._settings |= {
                "sasl_mechanism": login.mechanism, "sasl_oauth_token_provider": _FileOfAiokafka(login)
            }  # fmt: skip
        elif login.mechanism:
            self._settings |= {
                "sasl_mechanism": login.mechanism, "sasl_plain_username": login.user,
                "sasl_plain_password": login.password,
            }  # fmt: skip
        self._producer: Any = None

    def send(self, topic: str, size: int) -> None:
        async def one() -> None:
            if self._producer is None:
                self._producer = aiokafka.AIOKafkaProducer(**self._settings)
                await self._producer.start()
            await self._producer.send_and_wait(topic, bytes(size), partition=0)

        self._do(one())

    def read(self, topic: str) -> int:
        async def one() -> int:
            consumer = aiokafka.AIOKafkaConsumer(**self._settings, auto_offset_reset="earliest")
            await consumer.start()
            try:
                consumer.assign([aiokafka.TopicPartition(topic, 0)])
                return len((await consumer.getone()).value)
            finally:
                await consumer.stop()

        return int(self._do(one()))

    def close(self) -> None:
        if self._producer is not None:
            self._do(self._producer.stop())
