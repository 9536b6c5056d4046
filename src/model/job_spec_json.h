// The JSON form of a JobSpec: what clients send, what the journal keeps, what the API shows.
// Reading is strict (an unknown key names the nearest one, every wrong value is reported, not only
// the first); writing leaves out what is at its default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_writer.h"
#include "base/result.h"
#include "model/job_spec.h"

namespace berth {

/// From a request's body. Messages begin with the key they are about.
[[nodiscard]] Result<JobSpec> job_spec_from_json(const nlohmann::json& json);
/// As much of it as can be read: keys of a newer program are passed over, a value that makes no
/// sense is left at its default.
[[nodiscard]] JobSpec known_part(const nlohmann::json& json);
[[nodiscard]] nlohmann::json to_json(const JobSpec& spec);
/// The same text without a tree, for long lists of jobs: there, a script of megabytes and an
/// environment are left out, and in a brief one also its array's indices and the client's key.
enum class SpecPart : std::uint8_t { Whole, WithoutScriptAndEnvironment, Brief };
void write_json(JsonWriter& out, const JobSpec& spec, SpecPart part);

/// With some keys changed: `changes` is a JSON object. Who made it and what it is part of stays.
[[nodiscard]] Result<JobSpec> changed_job_spec(const JobSpec& spec, std::string_view changes);

/// What cannot be right wherever it runs: both script and command or none, a NUL in a name, sizes
/// beyond limits, negative counts, a gang that does not divide. Empty: nothing.
[[nodiscard]] std::vector<std::string> problems(const JobSpec& spec);
/// What no job that was taken can have, and no engine is asked to bear: numbers out of range, no
/// device at all. Looks at numbers only, so that every record can be checked.
[[nodiscard]] std::vector<std::string> impossible_numbers(const JobSpec& spec);
/// The changes, as a JSON object, that make `before` into `after`; a key that goes back to its
/// default is null.
[[nodiscard]] std::string changes_between(const JobSpec& before, const JobSpec& after);

/// Key, kind ("string", "integer", "boolean", "list", "map", "number") and meaning: for OpenAPI and
/// help.
struct JobSpecField {
  std::string_view key;
  std::string_view kind;
  std::string_view meaning;
};
[[nodiscard]] const std::vector<JobSpecField>& job_spec_fields();

}  // namespace berth
