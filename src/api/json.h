// What people and programs read: every view of the service as JSON, with the names of its fields.
// Times are Unix microseconds, or null for "not yet". Long lists are written without a tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "daemon/service.h"

namespace berth::api {

/// A list leaves out scripts and environments; so does a view for somebody else's eyes. A brief one
/// also leaves out the paths of output and whatever is 0, empty or null; of an array it tells how
/// many may run at once and, of a row that stands for several jobs, their indices.
enum class Detail : std::uint8_t { Full, WithoutScriptAndEnvironment, Brief };

void write(JsonWriter& out, const JobView& job, Detail detail);
void write(JsonWriter& out, const AttemptRow& attempt);
void write(JsonWriter& out, const Deed& deed);
void write(JsonWriter& out, const NodeView& node);
void write(JsonWriter& out, const ClusterView& cluster);
void write(JsonWriter& out, const ShareView& share);
void write(JsonWriter& out, const TokenView& token);

[[nodiscard]] std::string to_json(const JobPage& page,
                                  Detail detail = Detail::WithoutScriptAndEnvironment);
[[nodiscard]] std::string to_json(const PastPage& page,
                                  Detail detail = Detail::WithoutScriptAndEnvironment);
[[nodiscard]] std::string to_json(const Submitted& submitted);
[[nodiscard]] std::string to_json(const Caller& caller);
/// {"policy":…,"settings":{…}}
[[nodiscard]] std::string policy_json(const ClusterView& cluster);
[[nodiscard]] std::string to_json(const JobView& job, Detail detail);

template <class View>
[[nodiscard]] std::string to_json(const View& view) {
  JsonWriter out;
  write(out, view);
  return out.take();
}
/// {"name":[…]}
template <class View>
[[nodiscard]] std::string list_json(std::string_view name, const std::vector<View>& views) {
  JsonWriter out;
  out.begin_object().key(name).begin_array();
  for (const View& view : views) write(out, view);
  out.end_array().end_object();
  return out.take();
}

}  // namespace berth::api
