// The pieces of Slurm's JSON (data_parser/v0.0.42, of 24.11).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/answers.h"
#include "client/slurm/facts.h"

namespace berth::client::slurm {

using Json = nlohmann::ordered_json;

/// {"set":true,"infinite":false,"number":N}
[[nodiscard]] Json set_number(std::int64_t number);
[[nodiscard]] Json no_number();
[[nodiscard]] Json infinite_number();
/// Seconds of Unix time from microseconds; 0 if there is none.
[[nodiscard]] Json set_moment(std::int64_t micros);
[[nodiscard]] Json exit_code_json(std::int32_t code, std::int32_t signal);
/// Of resources: [{"type":"cpu","name":"","id":1,"count":2}, …]
[[nodiscard]] Json tres_json(const Resources& resources);

/// {KEY: rows, "meta": …, "errors": [], "warnings": []} with what follows the rows in `more`.
[[nodiscard]] std::string json_answer(std::string_view key, Json rows, std::string_view command,
                                      const ClusterView& cluster,
                                      const Json& more = Json::object());

/// A job as squeue and scontrol show it.
[[nodiscard]] Json job_json(const JobRow& job, const std::string& indices, std::int64_t now,
                            const NodeTypes& types, std::string_view cluster);

/// v0.0.42 and its neighbours are one form here; another name is a word about it.
[[nodiscard]] Result<void> check_parser(const std::string& name);

}  // namespace berth::client::slurm
