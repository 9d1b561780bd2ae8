"""`sasl.jaas.config`: what is read, what is an error, and that Java agrees."""

from __future__ import annotations

import subprocess
from base64 import b64decode
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.peers import kafka_tools
from quorumlog.security.sasl.jaas import JaasError, Module, read_jaas, write_jaas
from quorumlog_storage.files.properties import render_properties
from tests.parts import few

PLAIN = Module.PLAIN.class_name
SCRAM = Module.SCRAM.class_name
OAUTH = Module.OAUTHBEARER.class_name
SIGNS = "".join(map(chr, range(0x20, 0x7F)))


def options(text: str) -> dict[str, str]:
    return {name: value.reveal() for name, value in read_jaas(text).options.items()}


GOOD = [
    ("double quotes", f'{PLAIN} required username="ada" password="p";', {"username": "ada", "password": "p"}),
    ("single quotes", f"{PLAIN} required username='ada' password='p\"q';", {"username": "ada", "password": 'p"q'}),
    ("words", f"{SCRAM} REQUIRED username=ada password=a-b_c$d.e9;", {"username": "ada", "password": "a-b_c$d.e9"}),
    ("no blanks", f'{SCRAM} optional username="a"password="b";', {"username": "a", "password": "b"}),
    ("many blanks", f'\n {SCRAM}\trequired\n\tusername = "a"\n;\n', {"username": "a"}),
    ("signs", f'{SCRAM} required password="a;b,c=d%e+f@g/h#i\'j";', {"password": "a;b,c=d%e+f@g/h#i'j"}),
    ("escapes", f'{SCRAM} required password="\\"\\\\\\n\\t\\x\\101\\0\\4777";', {"password": "\"\\\n\tx" + "A\0'77"}),
    ("other scripts", f"{SCRAM} required username=ädä password='日本😀';", {"username": "ädä", "password": "日本😀"}),
    ("comments", f"/* a */ {SCRAM} required // b\n username=ada / c\n;// d", {"username": "ada"}),
    ("nothing told", f"{OAUTH} required;", {}),
    ("an empty value", f'{OAUTH} required scope="";', {"scope": ""}),
    ("names of one's own", f'{OAUTH} required clientId="i" extension_p="q";', {"clientId": "i", "extension_p": "q"}),
    ("a server's users", f'{PLAIN} required user_ada="p" "user_b c"="q";', {"user_ada": "p", "user_b c": "q"}),
    ("one platform's package", f"kafkashaded.{PLAIN} required username='$Con';", {"username": "$Con"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), [c[1:] for c in GOOD], ids=[c[0] for c in GOOD])
def test_what_is_read(text: str, want: dict[str, str]) -> None:
    assert options(text) == want


@pytest.mark.parametrize("module", list(Module))
def test_the_module_is_told(module: Module) -> None:
    assert read_jaas(f"{module.class_name} required;").module is module


CANARY = "canary"
BAD = [
    ("empty", "", "line 1, column 1: the line must begin with one of"),
    ("another module", f'com.sun.security.auth.module.JndiLoginModule required password="{CANARY}";', "column 1"),
    ("Kerberos", f'com.sun.security.auth.module.Krb5LoginModule required keyTab="{CANARY}";', "Kerberos"),
    ("the module in a longer name", f"x.{PLAIN} required;", "column 1"),
    ("no flag", f'{PLAIN} username="ada" password="{CANARY}";', "required, requisite"),
    ("nothing after the module", PLAIN, "required, requisite"),
    ("no end", f'{PLAIN} required username="ada" password="{CANARY}"', "must end with `;`"),
    ("a second module", f"{PLAIN} required; {SCRAM} required;", "one login module"),
    ("a number", f"{PLAIN} required password=12{CANARY};", "double quotes"),
    ("a minus", f"{PLAIN} required password=-{CANARY};", "double quotes"),
    ("cut at @", f"{PLAIN} required password=p@{CANARY};", "double quotes"),
    ("cut at +", f"{PLAIN} required password=p+{CANARY};", "double quotes"),
    ("cut at =", f"{PLAIN} required password=p={CANARY};", "double quotes"),
    ("cut at ,", f"{PLAIN} required password=p,{CANARY};", "double quotes"),
    ("cut at a blank", f"{PLAIN} required password=p {CANARY};", "double quotes"),
    ("cut at a quote", f'{PLAIN} required password=p"{CANARY}";', "double quotes"),
    ("cut at ;", f"{PLAIN} required password=p;{CANARY}", "must end after its `;`"),
    ("cut at a comment", f"{PLAIN} required password=p/{CANARY};\n;", "begins a comment"),
    ("cut at //", f"{PLAIN} required password=p//{CANARY}\n;", "begins a comment"),
    ("cut at a quote inside", f'{PLAIN} required password="p"{CANARY}";', "double quotes"),
    ("an open quote", f'{PLAIN} required password="{CANARY};', "has no end"),
    ("an open quote with an escape", f'{PLAIN} required password="{CANARY}\\', "has no end"),
    ("a quote over two lines", f'{PLAIN} required password="{CANARY}\nmore";', "does not end in its line"),
    ("an open comment", f"{PLAIN} required /* {CANARY}", "comment has no end"),
    ("no value", f"{PLAIN} required username= ;", "value must come"),
    ("no sign", f'{PLAIN} required username "{CANARY}";', "`=` must come"),
    ("an option that is mistyped", f'{PLAIN} required pasword="{CANARY}";', "username, password, user_NAME"),
    ("an option of another module", f'{SCRAM} required user_ada="{CANARY}";', "username, password, tokenauth"),
    ("an option twice", f'{PLAIN} required password="p" password="{CANARY}";', "comes twice"),
    ("a sign for a key", f"{PLAIN} required @={CANARY};", "options"),
    ("a prefix alone", f'{PLAIN} required user_="{CANARY}";', "options"),
    ("endless", f'{PLAIN} required password="{CANARY}{"x" * 65_536}";', "are allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_an_error_tells_the_place_and_the_cure_and_not_the_value(text: str, why: str) -> None:
    with pytest.raises(JaasError) as refused:
        read_jaas(text)
    assert why in str(refused.value) and CANARY not in str(refused.value)


def test_the_place_is_that_of_the_character() -> None:
    with pytest.raises(JaasError) as refused:
        read_jaas(f"{PLAIN} required\n  username=ada\n  password=p@q;")
    assert (refused.value.line, refused.value.column) == (3, 13)


def test_an_entry_prints_no_value() -> None:
    assert CANARY not in repr(read_jaas(f'{PLAIN} required password="{CANARY}";'))


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=few(300))
@given(ANY_TEXT, ANY_TEXT)
def test_what_is_written_is_read_back(name: str, password: str) -> None:
    told = {"username": name, "password": password}
    assert options(write_jaas(Module.SCRAM, told)) == told


@settings(max_examples=few(100))
@given(st.dictionaries(ANY_TEXT.filter(bool), ANY_TEXT, max_size=3))
def test_options_with_names_of_their_own_are_read_back(users: dict[str, str]) -> None:
    told = {f"user_{name}": password for name, password in users.items()}
    assert options(write_jaas(Module.PLAIN, told)) == told


def test_an_option_that_the_module_lacks_is_not_written() -> None:
    with pytest.raises(ValueError, match="clientId"):
        write_jaas(Module.SCRAM, {"clientId": "x"})


# --- Java

JAVA = """
import java.nio.file.*;
import java.util.*;
import static java.nio.charset.StandardCharsets.UTF_8;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.utils.Utils;

public class ReadJaas {
    static String b64(Object text) {
        return Base64.getEncoder().encodeToString(((String) text).getBytes(UTF_8));
    }
    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String file : args) {
            Properties found = Utils.loadProps(file);
            for (int n = 0; found.containsKey("line" + n); n++) {
                Map<String, Object> configs = Map.of("sasl.jaas.config", new Password(found.getProperty("line" + n)));
                try {
                    var entry = JaasContext.loadClientContext(configs).configurationEntries().get(0);
                    StringBuilder line = new StringBuilder(b64(entry.getLoginModuleName()));
                    for (var option : new TreeMap<String, Object>(entry.getOptions()).entrySet())
                        line.append(' ').append(b64(option.getKey())).append(' ').append(b64(option.getValue()));
                    out.append(line).append('\\n');
                } catch (Exception error) {
                    out.append("error\\n");
                }
            }
        }
        System.out.print(out);
    }
}
"""


def read_by_java(texts: list[str], folder: Path) -> list[tuple[str, dict[str, str]] | None]:
    """Each text as Java reads it from a file of properties, as `client.properties` is one. None: it refuses."""
    try:
        kafka = kafka_tools.get_kafka()
    except kafka_tools.Unavailable as lacking:
        pytest.skip(f"Kafka cannot run here: {lacking}")
    source, file = folder / "ReadJaas.java", folder / "client.properties"
    source.write_text(JAVA)
    file.write_bytes(render_properties({f"line{n}": text for n, text in enumerate(texts)}))
    command = [kafka.java, *kafka_tools.SHORT_LIVED, "-cp", f"{kafka.jars}/*", str(source), str(file)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    return [_read(line) for line in said.splitlines()]


def _read(line: str) -> tuple[str, dict[str, str]] | None:
    if line == "error":
        return None
    module, *words = [b64decode(word).decode() for word in line.split(" ")]
    return module, dict(zip(words[::2], words[1::2], strict=True))


def texts_for_java(seed: int) -> list[str]:
    """Lines that are written, and lines of random parts, of which most are wrong."""
    random = Random(seed)
    letters = [*SIGNS, *"\t\n\r\0\x7f\x80\x9f\xa0\xff\u20ac\U0001f600", "\\", '"', "'"]
    written = [
        write_jaas(Module.SCRAM, {key: "".join(random.choices(letters, k=12)) for key in ("username", "password")})
        for _ in range(150)
    ]
    parts = [" ", " ", "username", "password", "=", "=", "a", "b.c", "-d", "1", ".", '"', "'", "\\", "\\1", "\\47", "/",
             "//", "/*", "*/", ";", ";", "@", "+", ",", "\n", "\x7f", "\x9f", "\xa0", "\u20ac", "$", "_"]  # fmt: skip
    mixed = [
        f"{SCRAM} required username={''.join(random.choices(parts, k=random.randint(1, 9)))};" for _ in range(1_500)
    ]
    return [*written, *mixed, *(text for _, text, _ in GOOD)]


def test_java_reads_what_is_written_and_nothing_is_read_otherwise_than_java_reads_it(tmp_path: Path) -> None:
    texts = texts_for_java(seed=4711)
    by_java = read_by_java(texts, tmp_path)
    assert len(by_java) == len(texts)
    taken = 0
    for text, java in zip(texts, by_java, strict=True):
        try:
            entry = read_jaas(text)
        except JaasError:
            continue
        taken += 1
        assert java is not None, text
        assert java[0].removeprefix("kafkashaded.") == entry.module.class_name
        assert java[1] == {name: value.reveal() for name, value in entry.options.items()}, text
    assert taken > 200
