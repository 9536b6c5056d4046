// Recovery from a damaged journal. Inputs that begin with '+' are lines "kind body", framed with
// good checksums, so that the ledger sees records in any order; all others are the bytes of the
// file itself. Either way: a ledger or an Error, and a second recovery finds the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/split.h"
#include "store/checksum.h"
#include "support/sim_store.h"

namespace {

/// Records one after the other, a second apart; lines that are none are left out.
std::string framed(std::string_view lines) {
  std::string bytes;
  std::uint64_t sequence = 0, checksum = berth::kFirstChecksum;
  for (const std::string_view line : berth::split(lines, '\n')) {
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    auto body = berth::decode(line.substr(0, space), line.substr(space + 1));
    if (!body) continue;
    ++sequence;
    const berth::Record record{berth::seconds_to_time(static_cast<double>(sequence)),
                               static_cast<std::int64_t>(sequence), *std::move(body)};
    berth::test::frame(record, sequence, checksum, bytes);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  berth::test::SimDisk disk;
  const bool is_made =
      disk.create("journal") &&
      disk.write("journal", 0, text.starts_with('+') ? framed(text.substr(1)) : std::string(text));
  BERTH_CHECK(is_made, "the file is there");
  berth::test::SimStore store(disk);
  const auto ledger = store.recover();
  if (!ledger) {
    BERTH_CHECK(!ledger.error().messages.empty(), "an error says something");
    return 0;
  }
  berth::test::SimStore again(disk);
  const auto same = again.recover();
  BERTH_CHECK(same && same->digest() == ledger->digest(), "recovery is the same again");
  BERTH_CHECK(again.dropped_bytes() == 0, "recovery has cut off what was damaged");
  for (const auto& [number, job] : ledger->jobs()) {
    BERTH_CHECK(number == job.number && number < ledger->next_number(), "numbers are in order");
    BERTH_CHECK(job.spec != nullptr, "a job has a spec");
    BERTH_CHECK(!job.attempt || job.attempt->id <= ledger->last_attempt(), "attempts are counted");
  }
  return 0;
}
