// The pieces of JSON that records and tables share: devices, and specs as they are kept.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "store/record.h"

namespace berth {

[[nodiscard]] nlohmann::json to_json(const std::vector<HeldDevices>& where);
[[nodiscard]] Result<std::vector<HeldDevices>> held_from_json(const nlohmann::json& json);

/// Steps are told as over the wire; of what is no list nothing is read.
[[nodiscard]] nlohmann::json to_json(const std::vector<StepView>& steps);
[[nodiscard]] std::vector<StepView> steps_from_json(const nlohmann::json& json);

/// JSON as text that any reader takes: bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string dump(const nlohmann::json& json);

/// A spec as it is kept, and the body of the record that submits it.
[[nodiscard]] std::string spec_text(const JobSpec& spec);
[[nodiscard]] std::string submit_body(JobNumber first, std::string_view spec_text);

/// The known fields of a spec: a newer version may have written more.
[[nodiscard]] Result<JobSpec> kept_spec(const nlohmann::json& json);
[[nodiscard]] Result<JobSpec> kept_spec(std::string_view text);

}  // namespace berth
