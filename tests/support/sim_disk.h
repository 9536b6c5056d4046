// A disk and its files without a disk: what a process wrote, what was synced, and what is left
// after a crash. A new name, a rename and a removal are durable after sync_directory(); until then
// a power loss keeps the first few of them. Deterministic: the draws come from the caller.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "support/paged_file.h"

namespace berth::test {

enum class Crash : std::uint8_t {
  Kill,   // the process: what it wrote stays written, and unsynced
  Power,  // the machine: synced pages and a random subset of the others, the last perhaps in part
};
enum class DiskFault : std::uint8_t { Eio, Enospc };

class SimDisk {
 public:
  /// Each answers whether it was done; after a fault it was not, and `fault()` says why.
  [[nodiscard]] bool create(const std::string& name);  // false also: it is there (O_EXCL)
  [[nodiscard]] bool write(const std::string& name, std::size_t offset, std::string_view bytes);
  [[nodiscard]] bool truncate(const std::string& name, std::size_t size);
  [[nodiscard]] bool sync(const std::string& name);
  [[nodiscard]] bool rename(const std::string& from, const std::string& to);
  [[nodiscard]] bool remove(const std::string& name);
  [[nodiscard]] bool sync_directory();

  [[nodiscard]] bool exists(const std::string& name) const { return names_.contains(name); }
  [[nodiscard]] std::string read(const std::string& name) const;
  [[nodiscard]] std::size_t size(const std::string& name) const;

  void crash(Crash kind, Rng& rng);

  /// The operation after this many more fails; so do all after it until clear_fault().
  void fail_after(std::uint64_t operations, DiskFault fault) {
    fails_at_ = operations_ + operations;
    fault_ = fault;
  }
  void clear_fault() { fails_at_.reset(); }
  [[nodiscard]] DiskFault fault() const noexcept { return fault_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

 private:
  using Names = std::map<std::string, std::shared_ptr<PagedFile>>;
  struct NameChange {  // what a power loss may forget
    std::string name;
    std::shared_ptr<PagedFile> file;  // none: removed
    std::optional<std::string> renamed_from;
  };
  [[nodiscard]] bool works();
  static void apply(Names& names, const NameChange& change);
  void change(NameChange change);

  Names names_, durable_names_;
  std::vector<NameChange> unsynced_names_;
  std::uint64_t operations_ = 0;
  std::optional<std::uint64_t> fails_at_;
  DiskFault fault_ = DiskFault::Eio;
};

}  // namespace berth::test
