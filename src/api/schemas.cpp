#include "api/openapi.h"

namespace berth::api {

// Times are Unix microseconds; null: not yet. "required" is left to the tests, which compare every
// answer with its schema key by key.
const char* schemas_json() noexcept {
  return R"json({
"Error":{"type":"object","properties":{"error":{"type":"object","properties":{
  "code":{"type":"string","description":"bad_request, unauthorized, forbidden, not_found, conflict, impossible, too_many, unavailable …"},
  "messages":{"type":"array","items":{"type":"string"}}}}}},
"Submitted":{"type":"object","properties":{
  "job":{"type":"integer","description":"number of the job, or of the first of an array"},
  "count":{"type":"integer","description":"jobs made; their numbers follow each other"},
  "repeat":{"type":"boolean","description":"the key was known: this is the job made then"},
  "notes":{"type":"array","items":{"type":"string"}}}},
"Held":{"type":"object","properties":{
  "node":{"type":"string"},
  "devices":{"type":"array","items":{"type":"integer"}},
  "cores":{"type":"array","items":{"type":"integer"},"description":"bound to these; empty: to any"}}},
"Training":{"type":"object","nullable":true,"description":"what its code reports of itself","properties":{
  "iterations":{"type":"number"},
  "iterations_per_second":{"type":"number"},
  "samples_per_second":{"type":"number"},
  "loss":{"type":"number","nullable":true},
  "sub_steps":{"type":"integer"},
  "last_heard_seconds_ago":{"type":"number"}}},
"Job":{"type":"object","properties":{
  "number":{"type":"integer"},
  "array":{"type":"integer","description":"number of the first job of its array; 0: none"},
  "array_index":{"type":"integer"},
  "spec":{"$ref":"#/components/schemas/JobSpec"},
  "state":{"$ref":"#/components/schemas/State"},
  "reason":{"type":"string","description":"why it waits or how it ended"},
  "submitted":{"type":"integer","nullable":true},
  "started":{"type":"integer","nullable":true,"description":"the first start"},
  "last_started":{"type":"integer","nullable":true},
  "ended":{"type":"integer","nullable":true},
  "run_seconds":{"type":"number"},
  "gpu_seconds":{"type":"number"},
  "attempts":{"type":"integer"},
  "preemptions":{"type":"integer"},
  "failures":{"type":"integer"},
  "where":{"type":"array","items":{"$ref":"#/components/schemas/Held"}},
  "granted":{"type":"integer","description":"devices it holds now"},
  "exit_code":{"type":"integer"},
  "signal":{"type":"integer"},
  "pid":{"type":"integer"},
  "output":{"type":"string"},
  "error":{"type":"string"},
  "training":{"$ref":"#/components/schemas/Training"}}},
"State":{"type":"string","enum":["held","blocked","pending","starting","running","suspended","stopping","completed","failed","cancelled","timed-out","preempted","node-failed","rejected"]},
"Outcome":{"type":"string","nullable":true,"enum":["completed","failed","cancelled","timed-out","preempted","node-failed","requeued","not-started","rejected",null]},
"JobPage":{"type":"object","properties":{
  "jobs":{"type":"array","items":{"$ref":"#/components/schemas/Job"}},
  "next":{"type":"integer","nullable":true,"description":"ask again with after=next"},
  "total":{"type":"integer","description":"that match, over all pages"}}},
"PastPage":{"type":"object","properties":{
  "jobs":{"type":"array","items":{"$ref":"#/components/schemas/Job"}},
  "next":{"type":"string","nullable":true,"description":"ask again with cursor=next"}}},
"Attempt":{"type":"object","properties":{
  "id":{"type":"string"},
  "where":{"type":"array","items":{"$ref":"#/components/schemas/Held"}},
  "begun":{"type":"integer","nullable":true},
  "ended":{"type":"integer","nullable":true},
  "outcome":{"$ref":"#/components/schemas/Outcome"},
  "exit_code":{"type":"integer"},
  "signal":{"type":"integer"},
  "gpu_seconds":{"type":"number"},
  "why":{"type":"string"}}},
"Attempts":{"type":"object","properties":{"attempts":{"type":"array","items":{"$ref":"#/components/schemas/Attempt"}}}},
"Why":{"type":"object","description":"every reason that holds the job back (docs/formats/why.md)"},
"Reason":{"type":"object","properties":{
  "why":{"type":"string","description":"for people"},
  "signal":{"type":"integer","minimum":1,"maximum":64}}},
"Action":{"type":"object","required":["verb"],"description":"at least one of ids, user, group, queue, name, state","properties":{
  "verb":{"type":"string","enum":["cancel","hold","release","requeue","suspend","resume","signal"]},
  "ids":{"type":"array","items":{"type":"integer"}},
  "user":{"type":"string"},
  "group":{"type":"string"},
  "queue":{"type":"string"},
  "name":{"type":"string"},
  "state":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
  "why":{"type":"string"},
  "signal":{"type":"integer","minimum":1,"maximum":64}}},
"Deed":{"type":"object","properties":{
  "job":{"type":"integer"},
  "done":{"type":"boolean"},
  "text":{"type":"string","description":"what happened, or why not"}}},
"Deeds":{"type":"object","properties":{"results":{"type":"array","items":{"$ref":"#/components/schemas/Deed"}}}},
"Cluster":{"type":"object","properties":{
  "policy":{"type":"string"},
  "settings":{"type":"object","additionalProperties":{"type":"string"}},
  "version":{"type":"string"},
  "generation":{"type":"integer","description":"which life of the scheduler this is"},
  "started":{"type":"integer","nullable":true},
  "uptime_seconds":{"type":"number"},
  "pending":{"type":"integer"},
  "running":{"type":"integer"},
  "held":{"type":"integer"},
  "gpus":{"type":"integer"},
  "gpus_used":{"type":"integer"},
  "queues":{"type":"array","items":{"$ref":"#/components/schemas/Queue"},"description":"the first is where jobs go that name none"},
  "passes":{"type":"integer"},
  "last_pass_seconds":{"type":"number"},
  "worst_pass_seconds":{"type":"number"},
  "trouble":{"type":"string","description":"empty: all is well"}}},
"Queue":{"type":"object","properties":{
  "name":{"type":"string"},
  "max_time_limit":{"type":"integer","description":"seconds; 0: none"}}},
"Node":{"type":"object","properties":{
  "name":{"type":"string"},
  "state":{"type":"string","description":"up, down, drained, off or booting"},
  "reason":{"type":"string"},
  "type":{"type":"string"},
  "gpus":{"type":"integer"},
  "gpus_used":{"type":"integer"},
  "cpus":{"type":"integer"},
  "cpus_used":{"type":"integer"},
  "memory_mib":{"type":"integer"},
  "devices":{"type":"array","items":{"type":"array","items":{"type":"integer"}},"description":"numbers of the jobs on each device"}}},
"Nodes":{"type":"object","properties":{"nodes":{"type":"array","items":{"$ref":"#/components/schemas/Node"}}}},
"NodeReason":{"type":"object","properties":{"reason":{"type":"string"}}},
"Policy":{"type":"object","required":["policy"],"properties":{
  "policy":{"type":"string"},
  "settings":{"type":"object","additionalProperties":{"type":"string"}}}},
"Share":{"type":"object","properties":{
  "kind":{"type":"string","enum":["user","group"]},
  "name":{"type":"string"},
  "shares":{"type":"number"},
  "gpu_seconds":{"type":"number","description":"decayed use"},
  "gpus_now":{"type":"integer"},
  "jobs_now":{"type":"integer"},
  "waiting":{"type":"integer"},
  "gpu_limit":{"type":"integer","description":"0: none"},
  "job_limit":{"type":"integer","description":"0: none"},
  "gpu_seconds_limit":{"type":"number","description":"0: none"}}},
"Shares":{"type":"object","properties":{"shares":{"type":"array","items":{"$ref":"#/components/schemas/Share"}}}},
"ShareChange":{"type":"object","required":["kind","name"],"properties":{
  "kind":{"type":"string","enum":["user","group"]},
  "name":{"type":"string"},
  "shares":{"type":"number"},
  "gpu_limit":{"type":"integer"},
  "job_limit":{"type":"integer"},
  "gpu_seconds_limit":{"type":"number"}}},
"Token":{"type":"object","properties":{
  "name":{"type":"string"},
  "user":{"type":"string"},
  "role":{"type":"string","enum":["user","operator","admin"]},
  "created":{"type":"integer","nullable":true,"description":"Unix seconds"},
  "expires":{"type":"integer","nullable":true,"description":"Unix seconds; null: never"}}},
"Tokens":{"type":"object","properties":{"tokens":{"type":"array","items":{"$ref":"#/components/schemas/Token"}}}},
"TokenRequest":{"type":"object","required":["name"],"properties":{
  "name":{"type":"string"},
  "user":{"type":"string","description":"whom it stands for (default: you)"},
  "role":{"type":"string","enum":["user","operator","admin"]},
  "expires":{"type":"integer","description":"Unix seconds; 0: never"}}},
"NewToken":{"type":"object","properties":{
  "token":{"type":"string","description":"shown this once"},
  "name":{"type":"string"},
  "user":{"type":"string"},
  "role":{"type":"string"},
  "expires":{"type":"integer","nullable":true}}},
"Caller":{"type":"object","properties":{
  "user":{"type":"string"},
  "uid":{"type":"integer","nullable":true,"description":"null: known by a token, not by the machine"},
  "gid":{"type":"integer","nullable":true},
  "role":{"type":"string","enum":["user","operator","admin"]}}},
"Health":{"type":"object","properties":{"status":{"type":"string","enum":["ok","trouble"]}}},
"Document":{"type":"object","description":"OpenAPI 3.0"}
})json";
}

}  // namespace berth::api
