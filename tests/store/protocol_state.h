// A state of the protocol's model (store/protocol_model.h): what is in the scheduler's memory, in
// the journal, in files, and which shims live.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace berth::test {

inline constexpr int kJobs = 2;
inline constexpr int kAttempts = 4;  // of a job: one, one preempted, one lost by each crash
inline constexpr std::size_t kJournal = 40;

enum class Phase : std::uint8_t {
  None,
  Submitted,
  Waiting,
  Intent,
  Running,
  Killing,
  Ending,
  Done
};
enum class Process : std::uint8_t { None, Forked, Running, Signalled };
enum class Claim : std::uint8_t { None, Shim, Tombstone };
enum class Exit : std::uint8_t { None, Ended, Preempted };
enum class Entry : std::uint8_t { Submit = 1, Intent, Ended, Preempted, Void };

struct Attempt {  // what of it is outside the scheduler
  Process process{};
  Claim claim{};
  Exit exit{};
};

struct ModelJob {
  Phase phase{};
  std::uint8_t attempt = 0;  // the one it is about, from 1
  std::uint8_t next = 1;     // never used again (R8); survives crashes
  bool is_submit_acked = false, is_end_acked = false;
  std::array<Attempt, kAttempts> attempts{};

  [[nodiscard]] Attempt& now() { return attempts[attempt - 1U]; }
  [[nodiscard]] const Attempt& now() const { return attempts[attempt - 1U]; }
};

struct JournalEntryModel {
  Entry kind{};
  std::uint8_t job = 0, attempt = 0;
  friend bool operator==(const JournalEntryModel&, const JournalEntryModel&) = default;
};

/// Bytes only, so that states compare and hash as bytes.
struct ModelState {
  std::array<ModelJob, kJobs> jobs{};
  std::array<JournalEntryModel, kJournal> journal{};
  std::uint8_t synced = 0;   // entries
  std::uint8_t written = 0;  // entries, with the tail
  std::uint8_t crashes = 0, preemptions = 0;
  bool is_down = false;

  void append(Entry kind, int job, int attempt) {
    journal[written++] = {kind, static_cast<std::uint8_t>(job), static_cast<std::uint8_t>(attempt)};
  }
  [[nodiscard]] bool is_synced(Entry kind, int job, int attempt) const {
    const JournalEntryModel wanted{kind, static_cast<std::uint8_t>(job),
                                   static_cast<std::uint8_t>(attempt)};
    return std::find(journal.begin(), journal.begin() + synced, wanted) != journal.begin() + synced;
  }
  void cut(std::uint8_t length) {
    for (std::size_t i = length; i < written; ++i) journal[i] = {};
    written = length;
  }
  friend bool operator==(const ModelState& a, const ModelState& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<ModelState>);

struct ModelStateHash {
  std::size_t operator()(const ModelState& state) const noexcept {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&state), sizeof state});
  }
};

}  // namespace berth::test
