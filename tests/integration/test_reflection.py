#!/usr/bin/python3
"""The schema as tools get it from the daemon: enough to call it without a proto file, by both versions."""
import threading
import unittest

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from harness import Daemon, create, error_of, job, stubs

Code = grpc.StatusCode


class Asker:
    """One stream of ServerReflectionInfo, asked one thing after another."""

    def __init__(self, daemon, version):
        name = "reflection" if version == "v1" else "reflection_alpha"
        self.pb = getattr(stubs(), name)
        self.service = getattr(stubs(), name + "_grpc").ServerReflectionStub(daemon.channel())
        self.requests = []

    def ask(self, *requests):
        """All in one stream; the responses."""
        sent = [self.pb.ServerReflectionRequest(host="h", **request) for request in requests]
        responses = list(self.service.ServerReflectionInfo(iter(sent), timeout=30))
        assert [r.original_request for r in responses] == sent
        assert {r.valid_host for r in responses} == {"h"}
        return responses

    def files(self, **request):
        """File descriptors by name, in the order they came."""
        response = self.ask(request)[0]
        assert response.WhichOneof("message_response") == "file_descriptor_response", response
        files = [descriptor_pb2.FileDescriptorProto.FromString(f)
                 for f in response.file_descriptor_response.file_descriptor_proto]
        return {file.name: file for file in files}


class Reflection(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(listen="127.0.0.1:0").start()
        cls.askers = [Asker(cls.daemon, "v1"), Asker(cls.daemon, "v1alpha")]

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()

    def test_services(self):
        for asker in self.askers:
            response = asker.ask({"list_services": ""})[0]
            self.assertEqual(sorted(s.name for s in response.list_services_response.service), [
                "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection", "skrull.v1.PlannerService"])

    def test_a_call_by_what_reflection_says_alone(self):
        create(self.daemon, job("seen"))
        for asker in self.askers:
            pool = descriptor_pool.DescriptorPool()
            for file in asker.files(file_containing_symbol="skrull.v1.PlannerService").values():
                pool.Add(file)  # each after what it imports
            method = pool.FindServiceByName("skrull.v1.PlannerService").FindMethodByName("GetJob")
            factory = message_factory.MessageFactory(pool)
            request, reply = (factory.GetPrototype(t) for t in (method.input_type, method.output_type))
            call = self.daemon.channel().unary_unary("/skrull.v1.PlannerService/GetJob",
                                                     request.SerializeToString, reply.FromString)
            self.assertEqual(call(request(name="seen"), timeout=10).info.steps, 100)

    def test_symbols(self):
        planner, job_file, plan = (f"skrull/v1/{name}.proto" for name in ("planner", "job", "plan"))
        for symbol, file in (("skrull.v1.PlannerService", planner), ("skrull.v1.PlannerService.GetJob", planner),
                             ("skrull.v1.Job", job_file), ("skrull.v1.Job.name", job_file),
                             ("skrull.v1.Order", job_file), ("skrull.v1.ORDER_SHUFFLE", job_file),
                             ("skrull.v1.Segment", plan), ("skrull.v1.StreamEnd", planner),
                             ("grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"),
                             ("grpc.health.v1.HealthCheckResponse.SERVING", "grpc/health/v1/health.proto"),
                             ("grpc.reflection.v1.ErrorResponse", "grpc/reflection/v1/reflection.proto"),
                             ("grpc.reflection.v1alpha.ErrorResponse", "grpc/reflection/v1alpha/reflection.proto"),
                             ("google.rpc.ErrorInfo.MetadataEntry", "google/rpc/error_details.proto"),
                             ("google.protobuf.FieldMask", "google/protobuf/field_mask.proto")):
            for asker in self.askers:
                files = asker.files(file_containing_symbol=symbol)
                self.assertEqual(list(files)[-1], file, symbol)
                self.assertEqual(list(files), list(asker.files(file_by_filename=file)))
        self.assertEqual(list(self.askers[0].files(file_by_filename=planner)),
                         ["google/protobuf/field_mask.proto", job_file, plan, planner])

    def test_what_is_not_there(self):
        asker = self.askers[0]
        for request in ({"file_containing_symbol": "skrull.v1.None"}, {"file_containing_symbol": "skrull.v1"},
                        {"file_containing_symbol": ""}, {"file_containing_symbol": "skrull.v1.Job.none"},
                        {"file_containing_symbol": "skrull.v1.JobX"}, {"file_containing_symbol": "Job"},
                        {"file_containing_symbol": "skrull.v1.PlannerService.None"},
                        {"file_by_filename": "none.proto"}, {"file_by_filename": "/etc/passwd"},
                        {"file_containing_extension": {"containing_type": "skrull.v1.Job", "extension_number": -5}},
                        {"all_extension_numbers_of_type": "skrull.v1.None"}):
            self.assertEqual(asker.ask(request)[0].error_response.error_code, Code.NOT_FOUND.value[0], request)
        numbers = asker.ask({"all_extension_numbers_of_type": "skrull.v1.Job"})[0].all_extension_numbers_response
        self.assertEqual((numbers.base_type_name, list(numbers.extension_number)), ("skrull.v1.Job", []))
        self.assertEqual(asker.ask({})[0].error_response.error_code, Code.INVALID_ARGUMENT.value[0])

    def test_many_questions_in_one_stream(self):
        responses = self.askers[0].ask(*[{"file_by_filename": f"{i}.proto"} for i in range(500)],
                                       {"file_containing_symbol": "skrull.v1.Job"})
        self.assertEqual(len(responses), 501)
        self.assertTrue(responses[-1].HasField("file_descriptor_response"))

    def test_hostile_questions(self):
        channel = self.daemon.channel()
        path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        good = self.askers[0].pb.ServerReflectionRequest(list_services="x").SerializeToString()
        for bad, code in ((b"\xff\xff", Code.INVALID_ARGUMENT), (b"\x22\x01\xff", Code.INVALID_ARGUMENT),
                          (b"\x22\x83\x20" + b"a" * 4099, Code.INVALID_ARGUMENT),
                          (b"\0" * (1 << 20) + b"\0", Code.RESOURCE_EXHAUSTED)):
            for before in (0, 1, 3):
                replies = channel.stream_stream(path)(iter([good] * before + [bad]), timeout=30)
                got = []
                with self.assertRaises(grpc.RpcError) as caught:
                    for reply in replies:
                        got.append(reply)
                self.assertEqual(caught.exception.code(), code, bad[:8])
                self.assertLessEqual(len(got), before)
        list(channel.stream_stream(path)(iter([good]), timeout=30))

    def test_a_drain_ends_streams_that_ask_nothing(self):
        with Daemon() as daemon:
            asker, is_over = Asker(daemon, "v1"), threading.Event()
            self.addCleanup(is_over.set)
            def questions():
                yield asker.pb.ServerReflectionRequest(list_services="x")
                is_over.wait(60)
            asked = asker.service.ServerReflectionInfo(questions())
            next(asked)
            self.assertEqual(daemon.stop(timeout=4), 0)
            self.assertEqual(list(asked), [])
            is_over.set()


class OffElsewhere(unittest.TestCase):
    def test_off_where_others_can_reach_it_unless_asked_for(self):
        for listen, options, is_on in (("0.0.0.0:0", ["--insecure"], False),
                                       ("0.0.0.0:0", ["--insecure", "--reflection"], True),
                                       ("127.0.0.1:0", [], True)):
            with Daemon(*options, listen=listen) as daemon:
                daemon.address = daemon.address.replace("0.0.0.0", "127.0.0.1")
                for version in ("v1", "v1alpha"):
                    asker = Asker(daemon, version)
                    if is_on:
                        asker.ask({"list_services": ""})
                        continue
                    error = error_of(asker.service.ServerReflectionInfo,
                                     iter([asker.pb.ServerReflectionRequest(list_services="")]))
                    self.assertEqual(error.code(), Code.UNIMPLEMENTED)
                    self.assertIn("--reflection", error.details())


if __name__ == "__main__":
    unittest.main()
