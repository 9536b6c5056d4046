// Devices and other countable things as Slurm writes them. Three dialects: a list of gres
// (`gpu:v100:4(IDX:0-3),shard:2(2/4,0/4)`), a request (`gres/gpu:a100:4`, before 23.02
// `gres:gpu:4`, per task `cpu=8,gres/gpu=1`), and a TRES list (`cpu=16,mem=16000M,gres/gpu=16`).
// What cannot be read is left out: a newer Slurm may count things that this one does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "slurm/facts.h"

namespace berth::slurm {

/// Both a list of gres and a request. Things that are no gres ("cpu=8") are left out.
[[nodiscard]] std::vector<GresCount> parse_gres(std::string_view text);

/// "0-3,7" as numbers; nothing of "N/A". A number above 65,535 is no index.
[[nodiscard]] std::vector<std::int32_t> parse_indices(std::string_view text);

/// The count of `name` ("cpu", "gres/gpu") in a TRES list; nothing if it is not there.
[[nodiscard]] std::optional<std::int64_t> tres_count(std::string_view tres, std::string_view name);
/// The first type of `gres` in a TRES list: "a100" of "gres/gpu:a100=16"; empty if none.
[[nodiscard]] std::string_view tres_type(std::string_view tres, std::string_view gres);

/// MiB of "16000M", "250G", "1.5T"; a number alone is MiB. 0 of anything else.
[[nodiscard]] std::int64_t parse_mebibytes(std::string_view text);
/// MiB of "mem=" in a TRES list; 0 if it is not there.
[[nodiscard]] std::int64_t tres_mebibytes(std::string_view tres);

}  // namespace berth::slurm
