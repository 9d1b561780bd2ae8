"""What Java and Apache Kafka make of names and rules: `python -m tests.security.tls.java_answers JAR...` asks them.

JAR: kafka-clients and slf4j-api. It writes names.tsv: the DER of a name in hexadecimal, and the text that
`X500Principal.getName()` makes of it; and rules.tsv: rules with a name, and what `SslPrincipalMapper` maps it to,
`-` where no rule fits, `!` where it does not take the rules. The tests read them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NAMES, RULES = HERE / "names.tsv", HERE / "rules.tsv"
SEED, COUNT = 30, 120
JAVA = r"""
import java.io.*; import java.util.*; import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
public class Asked {
    static byte[] bytes(String hex) { return HexFormat.of().parseHex(hex); }
    static String text(String hex) throws Exception { return new String(bytes(hex), "UTF-8"); }
    static String name(String line) throws Exception { return "=" + new X500Principal(bytes(line)).getName(); }
    static String mapped(String rules, String name) throws Exception {
        SslPrincipalMapper mapper;
        try { mapper = SslPrincipalMapper.fromRules(text(rules)); } catch (RuntimeException e) { return "!"; }
        try { return "=" + mapper.getName(text(name)); } catch (IOException e) { return "-"; }
    }
    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            String said = parts.length == 1 ? name(line) : mapped(parts[0], parts[1]);
            System.out.println(HexFormat.of().formatHex(said.getBytes("UTF-8")));
        }
    }
}
"""
OIDS = (
    "2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11", "0.9.2342.19200300.100.1.25",
    "0.9.2342.19200300.100.1.1", "1.2.840.113549.1.9.1", "2.5.4.5", "2.5.4.4", "2.5.4.12", "2.999.5",
)  # fmt: skip
SIGNS = ' \r\n\t,=+<>#;"\\ab\0é中x1\u2028'
TAGS = (0x0C, 0x0C, 0x0C, 0x13, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E, 0x02, 0x04)
PLAIN_RULES = (
    "DEFAULT", "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", r"RULE:^cn=(.*?),ou=(.*?)$/$1@$4/U", "RULE:.*/x/",
    r"RULE:CN=(.*)/$1\/a/", "", "RULE:a|ab/z/", "RULE:(CN=)?(.*)/$2/", "RULE:(a)(b)?.*/[$2]/", "RULE:^CN=(.*)$/$10/",
    "RULE:^CN=(.*)$/$11x/", "RULE:^CN=(.*)$/$0/", "RULE:^CN=(.*)$/$01/", r"RULE:^CN=(.*)$/\$1/", "RULE:^CN=(.*)$/$1/X",
    "RULE:^CN=(.*)$/$1", "foo", "DEFAULTx", "RULE:b*/-/", "RULE:(.)/$1/", r"RULE:^CN=(\w+),.*$/$1/U", "rule:a/b/",
    "RULE:(1)(2)(3)(4)(5)(6)(7)(8)(9)(0).*/$10$9$11/",
)  # fmt: skip
DNS = ("CN=kafka1,OU=SME,O=mycp", "CN=alice,OU=ServiceUsers,O=Org", "cn=Bob,ou=x", "CN=a", "aab", "abc",
       r"CN=\,a\=b,OU=é", "1234567890zz", "CN=İ,OU=ΑΣ", "b")  # fmt: skip


def tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + (bytes([size]) if size < 128 else bytes([0x80 | len(digits)]) + digits) + content


def oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    out = b""
    for value in (first * 40 + second, *rest):
        figures = [value & 127]
        while value := value >> 7:
            figures.append(value & 127 | 128)
        out += bytes(reversed(figures))
    return tlv(6, out)


def random_name(rng: random.Random) -> bytes:
    def value() -> bytes:
        tag = rng.choice(TAGS)
        text = "".join(rng.choice(SIGNS) for _ in range(rng.randrange(7)))
        code = {0x1E: "utf-16-be", 0x1C: "utf-32-be", 0x14: "latin-1"}.get(tag, "utf-8")
        return tlv(tag, b"\5" if tag == 2 else text.encode(code, "replace"))

    def part() -> bytes:
        return tlv(0x31, b"".join(tlv(0x30, oid(rng.choice(OIDS)) + value()) for _ in range(rng.choice((1, 1, 2)))))

    return tlv(0x30, b"".join(part() for _ in range(rng.randrange(4))))


def main(jar: str) -> None:
    rng = random.Random(SEED)
    names = [random_name(rng).hex() for _ in range(COUNT)]
    rules = [(rule, name) for rule in PLAIN_RULES for name in DNS[:4]]
    rules += [(rng.choice((",", " , ", ",,")).join(rng.sample(PLAIN_RULES, 2)), rng.choice(DNS)) for _ in range(COUNT)]
    asked = [*names, *(f"{rule.encode().hex()} {name.encode().hex()}" for rule, name in rules)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "Asked.java"
        source.write_text(JAVA)
        words = ["java", "-cp", jar, str(source)]
        said = subprocess.run(words, input="\n".join(asked), capture_output=True, text=True, check=True, timeout=120)
    answers = [bytes.fromhex(line).decode() for line in said.stdout.split()]
    NAMES.write_text("".join(f"{one}\t{json.dumps(told[1:])}\n" for one, told in zip(names, answers, strict=False)))
    mapped = zip(rules, answers[len(names) :], strict=True)
    RULES.write_text("".join(f"{json.dumps([rule, name])}\t{json.dumps(told)}\n" for (rule, name), told in mapped))


if __name__ == "__main__":
    main(":".join(sys.argv[1:]))
