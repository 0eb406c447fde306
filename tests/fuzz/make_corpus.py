#!/usr/bin/python3
"""Writes the seeds of the fuzz targets, tests/fuzz/corpus/TARGET/*.

usage: make_corpus.py [--check | --more FOLDER]
--check writes nothing and fails where what is committed is not what this script makes. Files named
regression_* are findings that were mended; they are left alone.
--more writes what need not be committed: FOLDER/fuzz_index/*, all small files of tests/data/formats,
and FOLDER/fuzz_job_file.dict, the words of a job.
"""
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FORMATS = os.path.join(ROOT, "tests", "data", "formats")
MAX_FILE, MAX_TOTAL = 4096, 1 << 20

# Three sequences: 5, 7 and 4294967295 tokens.
SKX = bytes.fromhex(
    "534b52554c4c5800010000000000000003000000000000000b0000000100000000000000000000000000000000000000"
    "bdce74e4f10acb54811506402d568a640500000007000000ffffffff")

AUTO = b"\0\0"  # format and column found out

# Three sequences of 5, 7 and 2 tokens, two documents.
MEGATRON = (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 3, 3) + struct.pack("<iii", 5, 7, 2)
            + struct.pack("<qqq", 0, 10, 24) + struct.pack("<qqq", 0, 2, 3))

MINIMAL_JOB = """name: job
model: {preset: qwen2.5-0.5b}
parallel: {dp: 4, cp: 8}
batch: {global: 256, bucket_tokens: 26624}
data:
  - index: wikipedia.txt
"""
FULL_JOB = """name: qwen7b-long-sft            # comment
model:
  preset: qwen2.5-7b
  flops: paper
training: {zero_stage: 2, recompute: selective, lora_rank: 0}
hardware: {profile: paper-h100}
parallel: {dp: 4, cp: 8, tp: 1, pp: 1, cp_mode: fixed, min_degree: 1, max_degree: 0, ranks_per_node: 0,
           order: tp-cp-ep-dp-pp}
batch:
  global: 256
  bucket_tokens: '26624'
  align: 1
  shard: SHARD_ZIGZAG
  equal_micro_batches: auto
  micro_batch_multiple: 1
  micro_batch_min: 1
  micro_batches: 0
  micro_batch_order: as_planned
  mix: any
data:
  - index: /data/a.txt
    format: auto
    over_length: reject
    weight: 0
    column: ""
    unit: sequence
  - {index: b.skx, overLength: truncate}
seed: 9223372036854775807
order: shuffle
epochs: 3
last_batch: drop
loss: token_mean
effort: default
policy: skrull
uid: 0123456789abcdef0123456789abcdef
revision: 1
info: {sequences: 10, tokens: 100, steps: 1, indexes: [{count: 10, tokens: 100, payloadHash: "1"}]}
"""
JSON_JOB = """{"name": "job", "model": {"preset": "qwen2.5-0.5b"}, "parallel": {"dp": 4, "cp": 8, "cpMode":
"CP_MODE_ELASTIC"}, "batch": {"global": 256, "bucketTokens": "26624"}, "data": [{"index": "a.txt"}],
"steps": "1000", "zeroStage": null}"""
ODD_JOBS = [
    "", "name", "- a\n- b\n", "name: [1, 2]\n", "name: &a job\nmodel: *a\n", "? {a: b}\n: c\n",
    "name: job\nname: job\n", "data: []\n", "%YAML 1.2\n---\nname: job\n...\n---\nname: b\n", "\t: x\n",
    "name: !!binary aGk=\n", "name: 'job\n", "seed: 1e300\n", "seed: -1\n", "seed: 0x10\n", "epochs: .inf\n",
    MINIMAL_JOB + "bogus: 1\n", MINIMAL_JOB.replace("256", "65537"), MINIMAL_JOB.replace("8}", "'8'}"),
    MINIMAL_JOB.replace("job", "\\u0000"), "a: " * 40 + "1\n", "[" * 60,
]

# "5\n" a thousand times, once, and "x\n", compressed by gzip.
GZIP_MANY = bytes.fromhex(
    "1f8b080000000000020333e5321d85a370148ec251380a47e11087006975662dd0070000")
GZIP_5 = bytes.fromhex("1f8b080000000000020333e5020057393d0302000000")
GZIP_X = bytes.fromhex("1f8b0800000000000203abe002001f08ea4602000000")
ODD_TEXTS = [b"", b"0\n", b"1 2,3\t4\r\n", b"\xef\xbb\xbf5\n", b"4294967296\n", b"-1\n", b"1e3\n", b"# 5\n",
             b"9" * 4000, b"length\n5\n", b'{"length": 5}\n', b"[5, 6]", GZIP_MANY,
             GZIP_5 + GZIP_X, GZIP_5[:-4]]

JOB_TEXT = """name: "job" model { preset: "qwen2.5-0.5b" flops: FLOPS_PAPER }
training { zero_stage: ZERO_STAGE_2 recompute: RECOMPUTE_FULL } hardware { profile: "paper-h100" }
parallel { dp: 4 cp: 8 cp_mode: CP_MODE_ELASTIC } batch { global: 256 bucket_tokens: 26624 align: 8 shard: SHARD_ZIGZAG }
data { index: "a.txt" format: "auto" over_length: OVER_LENGTH_DROP } data { index: "b.skx" weight: 0.5 }
seed: 42 order: ORDER_SHUFFLE steps: 9 loss: LOSS_SEQUENCE_MEAN policy: "skrull" uid: "%s" revision: 2
info { sequences: 10 tokens: 99 steps: 1 indexes { count: 10 tokens: 99 payload_hash: 77 } }""" % ("0a" * 16)
ESTIMATE = "estimate { iteration_ns: 9 bound_ns: 8 comp_ns: 7 comm_ns: -1 idle_ns: 2 }"
HEAD = """job: "job" uid: "%s" revision: 3 step: 9 epoch: 1 policy: "skrull" digest: "%s" dp: 1 cp: 2
totals { sequences: 2 tokens: 9 loss_tokens: 9 }""" % ("0b" * 16, "0c" * 16)
SEGMENT = """segments { sample: %d index: 5 sequence_length: 6 token_begin: 0 token_end: 6 padded_tokens: 8
group_first: 0 group_size: 1 loss_weight: 0.125 }"""
RANK = """rank_digest: "%s" micro_batches { %s %s tokens: 12 padded_tokens: 16 %s } micro_batches { dummy: true }
%s """ % ("0d" * 16, SEGMENT % 4, SEGMENT % 5, ESTIMATE, ESTIMATE)
PLAN_TEXT = "%s %s ranks { %s data_rank: 0 %s } ranks { %s data_rank: 1 rank_digest: \"%s\" }" % (
    HEAD, ESTIMATE, HEAD, RANK, HEAD, "0e" * 16)
REPORT_TEXT = """job: "job" uid: "%s" reports { step: 3 data_rank: 1 digest: "%s" elapsed_ns: 5 peak_bytes: 6
micro_batches { compute_busy_ns: 1 compute_wait_ns: 2 exchange_busy_ns: 3 exchange_wait_ns: -4 } } reports { step: 4 }
""" % ("0a" * 16, "0c" * 16)

# Message of the schema -> seeds in protobuf's text format.
MESSAGES = {
    "Job": [JOB_TEXT, ""],
    "Plan": [PLAN_TEXT],
    "RankPlan": ["%s data_rank: 1 %s" % (HEAD, RANK)],
    "CreateJobRequest": ['job { %s } request_id: "r-1"' % JOB_TEXT, "job { }"],
    "GetJobRequest": ['name: "job"'],
    "DeleteJobRequest": ['name: "job"'],
    "DeleteJobResponse": [""],
    "ListJobsRequest": ['page_size: 10 page_token: "job"'],
    "ListJobsResponse": ['jobs { %s } jobs { } next_page_token: "n"' % JOB_TEXT],
    "UpdateJobRequest": ['job { %s } update_mask { paths: "parallel.dp" } expected_revision: 1 from_step: 64' % JOB_TEXT],
    "GetPlanRequest": ['job: "job" step: 7 data_ranks: 0 data_ranks: 31'],
    "StreamPlansRequest": ['job: "job" uid: "%s" data_rank: 3 from_step: 5 count: 6 window: 16 resume_digest: "%s"'
                           % ("0a" * 16, "0c" * 16)],
    "StreamPlansResponse": ["plan { %s data_rank: 1 %s }" % (HEAD, RANK), "heartbeat { }",
                            "end { reason: END_REASON_DRAINING next_step: 8 }"],
    "PlanBatchRequest": ["job { %s } lengths: 5 lengths: 4000000000 loss_tokens: 3 loss_tokens: 9" % JOB_TEXT],
    "ReportStepsRequest": [REPORT_TEXT],
    "ReportStepsResponse": ["next_step: 12"],
    "DescribeIndexRequest": ['path: "a/b.txt" format: "text"'],
    "IndexStats": ['format: "skx" count: 3 tokens: 9 min: 1 max: 5 mean: 3.5 p50: 3 histogram { upper: 8 count: 3 }'],
    "ComparePoliciesRequest": ['job { %s } from_step: 1 steps: 2 policies: "skrull" policies: "uniform"' % JOB_TEXT],
    "Comparison": ['rows { policy: "skrull" mean_ns: 5 speedup: 1.5 gap: 0.25 } rows { policy: "x" refused: "why" }'],
    "WatchJobRequest": ['name: "job"'],
    "JobStatus": ["name: \"job\" next_step: 5 steps: 9"],
}
# The content of a google.protobuf.Any, whose text form needs to know the types.
ERROR_INFO = 'reason: "JOB_NOT_FOUND" domain: "skrull" metadata { key: "limit" value: "5" }'
REFLECTION_TEXTS = [
    'list_services: ""', 'host: "h" file_by_filename: "skrull/v1/planner.proto"', 'file_by_filename: "no.proto"',
    'file_containing_symbol: "skrull.v1.PlannerService.GetPlan"', 'file_containing_symbol: "skrull.v1.Order"',
    'file_containing_extension { containing_type: "skrull.v1.Job" extension_number: 7 }',
    'all_extension_numbers_of_type: "skrull.v1.Job"', ""]
JSON_TEXTS = {
    "Job": ['{"name":"job","parallel":{"dp":4,"cp":8},"batch":{"global":256,"bucketTokens":26624},"seed":"42",'
            '"order":"ORDER_SHUFFLE","data":[{"index":"a.txt","weight":0.5}]}',
            '{"name":null,"data":[null]}', '{"seed":1.5}', '{"a":1,"a":2}', '[]', '{"name":"\\ud800"}'],
    "Plan": ['{"job":"job","step":"9","ranks":[{"dataRank":1,"microBatches":[{"dummy":true}]}],"totals":{"tokens":"9"}}'],
}


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def encode(file, message, text):
    """Text format to wire bytes."""
    return subprocess.run(["protoc", "-I" + os.path.join(ROOT, "proto"), "--encode=" + message, file],
                          input=text.encode(), check=True, stdout=subprocess.PIPE, cwd=os.path.join(ROOT, "proto")).stdout


def status_seed():
    """A google.rpc.Status with one detail."""
    info = encode("google/rpc/error_details.proto", "google.rpc.ErrorInfo", ERROR_INFO)
    quoted = "".join(f"\\{byte:03o}" for byte in info)
    text = f"""code: 5 message: "job: none"
details {{ type_url: "type.googleapis.com/google.rpc.ErrorInfo" value: "{quoted}" }}"""
    return encode("google/rpc/status.proto", "google.rpc.Status", text)


def rpc_seeds():
    with open(os.path.join(HERE, "rpc_messages.def"), encoding="utf-8") as table:
        lines = table.read()
    codecs = re.findall(r"^CODEC\((\w+),", lines, re.M) + ["health_check_request", "plan", "stream_event", "plan_text",
                                                          "status", "reflection"]
    messages = re.findall(r"^MESSAGE\((\w+)\)", lines, re.M)
    health = {"health_check_request": b"\x0a\x17skrull.v1.PlannerService", "health_check_response": b"\x08\x01"}
    wire = {snake(name): [encode("skrull/v1/planner.proto", "skrull.v1." + name, text) for text in texts]
            for name, texts in MESSAGES.items()}
    special = {"stream_event": wire["stream_plans_response"], "plan_text": [t.encode() for t in JSON_TEXTS["Plan"]],
               "status": [status_seed()],
               "reflection": [encode("grpc/reflection/v1/reflection.proto", "grpc.reflection.v1.ServerReflectionRequest", text)
                              for text in REFLECTION_TEXTS],
               **{name: [body] for name, body in health.items()}}
    for i, name in enumerate(codecs):
        bodies = special[name] if name in special else wire[name]
        for j, body in enumerate(bodies):
            yield f"codec_{name}_{j}", bytes([i]) + body
    for i, name in enumerate(messages):
        for j, body in enumerate(wire[name]):
            yield f"message_{name}_{j}", bytes([len(codecs) + i]) + body
    for name, texts in JSON_TEXTS.items():
        for j, text in enumerate(texts):
            choice = len(codecs) + len(messages) + messages.index(snake(name))
            yield f"json_{snake(name)}_{j}", bytes([choice]) + text.encode()
    yield "nested", bytes([len(codecs)]) + nested(40)
    yield "amplified", bytes([codecs.index("list_jobs_response")]) + b"\x0a\x00" * 1000


def nested(depth):
    """A field 12 (of some length) in itself."""
    body = b""
    for _ in range(depth):
        body = b"\x62" + varint(len(body)) + body
    return body


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def options(policy=0, dp=4, cp=8, bucket=26624, align=1, cp_mode=1, shard=1, loss=1, equal=0, least=0, most=0, node=0,
            exact=0, multiple=0, minimum=0, order=0, mix=0, effort=20):
    """What planner_input.c reads before the lengths."""
    return struct.pack("<BBHHIHBBBBHHHHBBBBB", 0, policy, dp, cp, bucket, align, cp_mode, shard, loss, equal, least, most,
                       node, exact, multiple, minimum, order, mix, effort)


def lengths(*numbers):
    return b"".join(struct.pack("<BI", 2, number) for number in numbers)


def planner_seeds():
    mixed = lengths(30000, 200, 150000, 7, 7, 7, 12000, 1, 26624, 800)
    yield "empty", b""
    for policy in range(4):
        yield f"mixed_{policy}", options(policy) + mixed
        yield f"equal_{policy}", options(policy, equal=1, loss=2, shard=2) + mixed
        yield f"eight_of_7_{policy}", options(policy, 1, 1, 8) + lengths(*[7] * 8)
        yield f"prime_{policy}", options(policy, 3, 7, 100, cp_mode=2) + lengths(*range(1, 40))
        yield f"align_{policy}", options(policy, 2, 4, 4096, 128) + lengths(698, 698, 1, 5504, 184)
        yield f"shared_{policy}", options(policy, 2, 4, 4096, least=4) + lengths(698, 698, 1, 5504, 184)
        yield f"exact_{policy}", options(policy, 2, 4, 4096, exact=9, order=2) + lengths(*range(100, 5000, 401))
        yield f"multiple_{policy}", options(policy, 2, 4, 4096, equal=1, multiple=4, minimum=3, order=3, mix=2) + lengths(
            698, 12000, 1, 5504, 184, 13, 9999, 3)
    yield "exact_too_few", options(2, 1, 1, 8, exact=7) + lengths(*[7] * 8)
    yield "too_long", options(0, 1, 2, 10) + lengths(21)
    yield "no_tokens", options(0, 1, 2, 10) + lengths(3, 0, 2)
    yield "longest", options(0, 1, 1, 4294967295) + lengths(4294967295, 4294967295)
    yield "many_ranks", options(0, 65535, 65535, 4294967295)
    yield "unknown_policy", options(250) + mixed
    yield "nodes", options(2, 2, 8, 1000, node=8, cp_mode=2) + lengths(700, 3000, 5, 900, 7000)


def patch(what, field, item, value):
    """The high bits of `what` say how long the value is."""
    code, size = [(0, 1), (64, 2), (128, 4), (192, 8)][0 if value < 256 else 1 if value < 65536 else 2]
    return struct.pack("<BBH", code + what, field, item) + value.to_bytes(size, "little")


def plan_check_seeds():
    bases = {
        "local": options(2, 2, 2, 64) + lengths(37, 30, 21, 5, 9, 7),
        "shared": options(2, 1, 4, 64, least=4) + lengths(100, 30, 21),
        "equal": options(2, 4, 1, 100, equal=1) + lengths(100, 90, 80, 5, 70),
    }
    for name, head in bases.items():
        head = head.ljust(64, b"\0")[:64]
        for mode in (0, 1):
            yield f"{name}_{mode}", bytes([mode]) + head
            for what, n_fields in ((0, 10), (1, 4), (2, 5), (3, 10)):
                for field in range(n_fields):
                    if mode == 0 or what == 3:
                        yield f"{name}_{mode}_{what}_{field}", bytes([mode]) + head + patch(what, field, 1, 300 + field)
    yield "blank", bytes([2]) + bases["local"].ljust(64, b"\0")[:64] + bytes([2, 2, 4, 8, 16])


def index_seeds():
    yield "skx", AUTO + SKX
    yield "skx_written", b"\x80\0" + SKX
    yield "skx_cut", AUTO + SKX[:70]
    yield "skx_hashed", b"\x40\0" + SKX
    # Loss tokens: 3, 7 and 0, in the array after the lengths.
    with_loss = SKX[:12] + struct.pack("<IQQQQQQ", 1, 3, 4294967307, 10, 0, 0, 0) + SKX[64:]
    yield "skx_loss_tokens", b"\x40\0" + with_loss.ljust(128, b"\0") + struct.pack("<III", 3, 7, 0)
    yield "text", b"\x80\0" + b"12\n7\n4294967295\n"
    yield "magic_only", AUTO + SKX[:8]
    for i, text in enumerate(ODD_TEXTS):
        yield f"text_{i}", AUTO + text
    for column in range(10):  # every column of fuzz_index.c
        yield f"csv_{column}", bytes([0, column]) + b"length,a,prompt,response,tokens\n5,6,7,8,9\n1,2,3,4,5\n"
        yield f"jsonl_{column}", bytes([0, column]) + (
            b'{"length": 5, "a": {"b": [1, 2]}, "prompt": [3], "response": [4, 5], "tokens": 6}\n')
    yield "megatron", b"\0\0" + MEGATRON
    yield "megatron_documents", b"\0\x80" + MEGATRON


def format_seeds():
    """The tests' own data, by whatever reader finds it to be its own."""
    for folder, _, files in sorted(os.walk(FORMATS)):
        for file in sorted(files):
            path = os.path.join(folder, file)
            if file.startswith("expected") or os.path.getsize(path) >= MAX_FILE:
                continue
            with open(path, "rb") as data:
                yield os.path.relpath(path, FORMATS).replace(os.sep, "_"), AUTO + data.read()


def job_file_seeds():
    for name, text in [("minimal", MINIMAL_JOB), ("full", FULL_JOB), ("json", JSON_JOB)]:
        yield name, text.encode()
    for i, text in enumerate(ODD_JOBS):
        yield f"odd_{i}", text.encode()


def dictionary():
    """Keys and words of a job, for libFuzzer."""
    words = set()
    for table in ("job_fields.def", "job_data_fields.def"):
        with open(os.path.join(ROOT, "proto", "src", table), encoding="utf-8") as source:
            for line in source:
                found = re.match(r"(?:NUMBER\(\w+, |TEXT\(|WORD\(|FRACTION\()([a-z_.]+),", line)
                words.update(found.group(1).split(".") if found else [])
    for name in ("job.proto",):
        with open(os.path.join(ROOT, "proto", "skrull", "v1", name), encoding="utf-8") as source:
            words.update(re.findall(r"^  ([A-Z_0-9]+) = \d+;", source.read(), re.M))
    words |= {": ", "\n  - ", "{", "}", "[", "]", "&a", "*a", "!!int", "|\n", "data"}
    return "".join('"%s"\n' % word.replace("\n", "\\x0a") for word in sorted(words)).encode()


def all_files():
    makers = {"fuzz_index": index_seeds, "fuzz_job_file": job_file_seeds, "fuzz_rpc": rpc_seeds,
              "fuzz_planner": planner_seeds, "fuzz_plan_check": plan_check_seeds}
    files = {}
    for target, maker in makers.items():
        for name, data in maker():
            path = os.path.join("corpus", target, name)
            assert path not in files and len(data) <= MAX_FILE + 1, path
            files[path] = data
    return files


def committed():
    """Path under tests/fuzz -> content."""
    found = {}
    for folder, _, names in os.walk(os.path.join(HERE, "corpus")):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.relpath(os.path.join(folder, name), HERE)] = file.read()
    return found


def check(files):
    found = committed()
    faults = [f"{path}: not what make_corpus.py makes" for path, data in files.items() if found.get(path) != data]
    faults += [f"{path}: make_corpus.py does not make it" for path in found
               if path not in files and not os.path.basename(path).startswith("regression_")]
    with open(os.path.join(ROOT, "proto", "src", "codec_rpc.h"), encoding="utf-8") as header:
        codecs = set(re.findall(r"^RPC_CODEC\((\w+),", header.read(), re.M))
    with open(os.path.join(HERE, "rpc_messages.def"), encoding="utf-8") as table:
        codecs -= set(re.findall(r"^CODEC\((\w+),", table.read(), re.M))
    faults += [f"rpc_messages.def: {name} of codec_rpc.h is not fuzzed" for name in codecs]
    total = sum(len(data) for data in found.values())
    if total > MAX_TOTAL:
        faults.append(f"{total} bytes of corpus, at most {MAX_TOTAL}")
    print("\n".join(sorted(faults)[:20]), end="\n" if faults else "")
    return 1 if faults else 0


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--more":
        for name, data in format_seeds():
            write(os.path.join(sys.argv[2], "fuzz_index", name), data)
        write(os.path.join(sys.argv[2], "fuzz_job_file.dict"), dictionary())
        return 0
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = all_files()
    if sys.argv[1:]:
        return check(files)
    for path in committed():
        if path not in files and not os.path.basename(path).startswith("regression_"):
            os.remove(os.path.join(HERE, path))
    for path, data in files.items():
        write(os.path.join(HERE, path), data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
