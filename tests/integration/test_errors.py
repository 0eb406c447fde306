#!/usr/bin/python3
"""Errors for programs: the reason, the field, the limit and when to come back, in every client's trailers."""
import os
import shutil
import tempfile
import unittest

import grpc

import harness
from harness import Daemon, Details, create, error_of, job, stream_request, stubs

Code = grpc.StatusCode


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="skrull-data-")
        shutil.copy(os.path.join(harness.LENGTHS, "chatqa2.txt"), cls.root)
        with open(os.path.join(cls.root, "bad.txt"), "w", encoding="ascii") as file:
            file.write("12\nword\n")
        with open(os.path.join(cls.root, "short.txt"), "w", encoding="ascii") as file:
            file.write("12\n13\n")
        cls.daemon = Daemon(data_roots=[cls.root]).start()
        cls.planner = cls.daemon.planner()
        cls.pb = stubs().planner
        cls.made = create(cls.daemon, job("e"), request_id="id-e")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close_channels()
        assert cls.daemon.stop() == 0, cls.daemon.log()
        shutil.rmtree(cls.root)

    def check(self, call, request, code, reason, field=None, limit=None):
        error = error_of(call, request)
        self.assertEqual(error.code(), code, error.details())
        details = Details(error)
        self.assertEqual(details.status.code, code.value[0])
        self.assertEqual(details.status.message, error.details())
        self.assertEqual((details.info.reason, details.info.domain), (reason, "skrull"), error.details())
        self.assertEqual(details.field, field, error.details())
        self.assertEqual(details.info.metadata.get("limit"), None if limit is None else str(limit), error.details())
        return details

    def bad_job(self, **changes):
        made = job("bad")
        for path, value in changes.items():
            part, _, name = path.rpartition("__")
            setattr(getattr(made, part) if part else made, name, value)
        return self.pb.CreateJobRequest(job=made)

    def test_jobs(self):
        planner, pb = self.planner, self.pb
        details = self.check(planner.GetJob, pb.GetJobRequest(name="none"), Code.NOT_FOUND, "JOB_NOT_FOUND")
        self.assertEqual(details.info.metadata["method"], "GetJob")
        self.check(planner.GetJob, pb.GetJobRequest(name="n" * 64), Code.INVALID_ARGUMENT, "FIELD_INVALID", "name")
        self.check(planner.CreateJob, pb.CreateJobRequest(job=job("e")), Code.ALREADY_EXISTS, "JOB_EXISTS")
        self.check(planner.CreateJob, pb.CreateJobRequest(job=job("other"), request_id="id-e"), Code.INVALID_ARGUMENT,
                   "REQUEST_ID_REUSED", "request_id")
        self.check(planner.CreateJob, pb.CreateJobRequest(), Code.INVALID_ARGUMENT, "FIELD_INVALID", "job")
        self.check(planner.ListJobs, pb.ListJobsRequest(page_token="?"), Code.INVALID_ARGUMENT, "PAGE_TOKEN_INVALID",
                   "page_token")

    def test_fields_of_a_job(self):
        for changes, field in (({"name": "UPPER"}, "job.name"),
                               ({"batch__bucket_tokens": 0}, "job.batch.bucket_tokens"),
                               ({"batch__align": 1 << 31}, "job.batch.align"),
                               ({"parallel__cp": 0}, "job.parallel.cp"),
                               ({"model__preset": "x"}, "job.model.preset"),
                               ({"order": 99}, "job.order")):
            self.check(self.planner.CreateJob, self.bad_job(**changes), Code.INVALID_ARGUMENT, "FIELD_INVALID", field)
        self.check(self.planner.CreateJob, self.bad_job(policy="none"), Code.INVALID_ARGUMENT, "POLICY_UNKNOWN", "job.policy")

    def test_indexes(self):
        def with_index(index, **changes):
            return self.pb.CreateJobRequest(job=job("bad", data=[stubs().job.Dataset(index=index, **changes)]))
        create_job, describe = self.planner.CreateJob, self.planner.DescribeIndex
        for request, code, reason in (("none.txt", Code.NOT_FOUND, "INDEX_NOT_FOUND"),
                                      ("/etc/passwd", Code.PERMISSION_DENIED, "INDEX_OUTSIDE_ROOTS"),
                                      ("bad.txt", Code.INVALID_ARGUMENT, "INDEX_INVALID")):
            self.check(create_job, with_index(request), code, reason, "job.data[0].index")
            self.check(describe, self.pb.DescribeIndexRequest(path=request), code, reason)
        narrow = with_index("chatqa2.txt")
        narrow.job.batch.bucket_tokens = 256
        self.check(create_job, narrow, Code.INVALID_ARGUMENT, "OVER_LENGTH", "job.data[0].over_length", 256 * 8)
        self.check(create_job, with_index("short.txt"), Code.INVALID_ARGUMENT, "TOO_FEW_SEQUENCES", None, 2)

    def test_plans_and_streams(self):
        planner, pb = self.planner, self.pb
        plan = planner.GetPlan(pb.GetPlanRequest(job="e", step=3))
        self.check(planner.GetPlan, pb.GetPlanRequest(job="e", step=100), Code.OUT_OF_RANGE, "STEP_OUT_OF_RANGE",
                   "step", 100)
        self.check(planner.GetPlan, pb.GetPlanRequest(job="e", data_ranks=[32]), Code.INVALID_ARGUMENT,
                   "DATA_RANK_OUT_OF_RANGE", "data_ranks", 32)
        stream = planner.StreamPlans
        self.check(stream, stream_request("e", 32), Code.INVALID_ARGUMENT, "DATA_RANK_OUT_OF_RANGE", "data_rank", 32)
        self.check(stream, stream_request("e", 0, from_step=101), Code.OUT_OF_RANGE, "STEP_OUT_OF_RANGE", "from_step",
                   100)
        self.check(stream, stream_request("e", 0, uid="0" * 32), Code.FAILED_PRECONDITION, "UID_MISMATCH", "uid")
        self.check(stream, stream_request("e", 0, from_step=5, resume_digest=plan.digest), Code.FAILED_PRECONDITION,
                   "RESUME_DIGEST_MISMATCH", "resume_digest", 4)
        self.check(stream, stream_request("e", 0, from_step=5, resume_digest="x"), Code.INVALID_ARGUMENT,
                   "FIELD_INVALID", "resume_digest")

    def test_updates(self):
        planner, pb, parts = self.planner, self.pb, stubs().job
        create(self.daemon, job("u", steps=300), planner=planner)

        def update(mask=(), revision=0, from_step=0, **fields):
            request = pb.UpdateJobRequest(job=parts.Job(name="u", **fields), expected_revision=revision,
                                          from_step=from_step)
            request.update_mask.paths.extend(mask)
            return request
        self.assertEqual(planner.UpdateJob(update(policy="uniform")).revision, 2)
        list(planner.StreamPlans(stream_request("u", 0, count=1)))
        call = planner.UpdateJob
        self.check(call, update(revision=1, policy="skrull"), Code.ABORTED, "REVISION_STALE", "expected_revision", 2)
        self.check(call, update(from_step=63, policy="skrull"), Code.FAILED_PRECONDITION, "STEP_GIVEN_OUT",
                   "from_step", 64)
        self.check(call, update(from_step=301, policy="skrull"), Code.OUT_OF_RANGE, "STEP_OUT_OF_RANGE", "from_step",
                   300)
        self.check(call, update(mask=["dp"]), Code.INVALID_ARGUMENT, "FIELD_INVALID", "update_mask")
        self.check(call, update(mask=["seed"] * 65), Code.INVALID_ARGUMENT, "FIELD_INVALID", "update_mask.paths")
        self.check(call, update(seed=5), Code.INVALID_ARGUMENT, "FIELD_INVALID", "job.seed")
        self.check(call, update(parallel=parts.Parallel(dp=1 << 31)), Code.INVALID_ARGUMENT, "FIELD_INVALID",
                   "job.parallel.dp")
        self.check(call, update(batch=parts.Batch(bucket_tokens=600)), Code.INVALID_ARGUMENT, "OVER_LENGTH",
                   "job.batch.bucket_tokens", 600 * 8)
        self.check(call, pb.UpdateJobRequest(job=parts.Job()), Code.INVALID_ARGUMENT, "FIELD_INVALID", "job.name")
        self.check(call, pb.UpdateJobRequest(), Code.INVALID_ARGUMENT, "FIELD_INVALID", "job")
        self.check(call, pb.UpdateJobRequest(job=parts.Job(name="none")), Code.NOT_FOUND, "JOB_NOT_FOUND")
        self.assertEqual(planner.GetJob(pb.GetJobRequest(name="u")).revision, 2)

    def test_reports(self):
        def reports(*entries):
            return self.pb.ReportStepsRequest(job="e", reports=[self.pb.StepReport(**entry) for entry in entries])
        plans = [self.planner.GetPlan(self.pb.GetPlanRequest(job="e", step=step)) for step in (6, 7)]
        good, call = {"step": 6, "digest": plans[0].digest}, self.planner.ReportSteps
        self.check(call, reports(good, {"step": 7, "digest": plans[0].digest}), Code.FAILED_PRECONDITION,
                   "DIGEST_MISMATCH", "reports[1].digest", 7)
        self.check(call, reports(good, {"step": 7, "digest": "x" * 33}), Code.INVALID_ARGUMENT, "FIELD_INVALID",
                   "reports[1].digest")
        self.check(call, reports({"data_rank": 32}), Code.INVALID_ARGUMENT, "DATA_RANK_OUT_OF_RANGE",
                   "reports[0].data_rank", 32)
        self.check(call, reports({"step": 100}), Code.OUT_OF_RANGE, "STEP_OUT_OF_RANGE", "reports[0].step", 100)

    def test_the_wire(self):
        channel = self.daemon.channel()
        def raw(method):
            return channel.unary_unary("/skrull.v1.PlannerService/" + method)
        self.check(raw("GetJob"), b"\x0a\x01\xff", Code.INVALID_ARGUMENT, "FIELD_INVALID", "name")
        self.check(raw("ReportSteps"), b"\x1a\x03\x1a\x01\x00", Code.INVALID_ARGUMENT, "FIELD_INVALID",
                   "reports.digest")
        self.check(raw("Nonsense"), b"", Code.UNIMPLEMENTED, "METHOD_UNKNOWN")
        health = self.daemon.health()
        self.check(health.Check, stubs().health.HealthCheckRequest(service="x"), Code.NOT_FOUND, "SERVICE_UNKNOWN")

    def test_a_message_of_wide_characters_arrives_whole(self):
        path = "/".join(["\u6587" * 80] * 5)
        error = error_of(self.planner.DescribeIndex, self.pb.DescribeIndexRequest(path=path))
        self.assertEqual(error.code(), Code.NOT_FOUND)
        self.assertEqual(Details(error).info.reason, "INDEX_NOT_FOUND")
        self.assertIn("\u6587", Details(error).status.message)


if __name__ == "__main__":
    unittest.main()
