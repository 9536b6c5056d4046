#include "support/sim_disk.h"

namespace berth::test {

namespace {

/// Page by page: arrived or not; the last one that is still missing perhaps up to a sector.
void lose_power(PagedFile& file, Rng& rng) {
  std::string image = file.synced();
  const auto& dirty = file.dirty();
  for (std::size_t i = 0; i < dirty.size(); ++i) {
    const bool is_last = i + 1 == dirty.size();
    if (is_last && rng.below(2) == 0)
      file.copy_page(dirty[i], (1 + rng.below(7)) * PagedFile::kSector, image);
    else if (rng.below(2) == 0)
      file.copy_page(dirty[i], PagedFile::kPage, image);
  }
  file.become(std::move(image));
}

}  // namespace

bool SimDisk::works() {
  const std::uint64_t operation = operations_++;
  return !fails_at_ || operation < *fails_at_;
}

void SimDisk::apply(Names& names, const NameChange& change) {
  if (change.renamed_from) names.erase(*change.renamed_from);
  if (change.file)
    names[change.name] = change.file;
  else
    names.erase(change.name);
}

void SimDisk::change(NameChange change) {
  apply(names_, change);
  unsynced_names_.push_back(std::move(change));
}

bool SimDisk::create(const std::string& name) {
  if (!works() || exists(name)) return false;
  change({name, std::make_shared<PagedFile>(), std::nullopt});
  return true;
}

bool SimDisk::write(const std::string& name, std::size_t offset, std::string_view bytes) {
  if (!works()) return false;
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  found->second->write(offset, bytes);
  return true;
}

bool SimDisk::truncate(const std::string& name, std::size_t size) {
  if (!works() || !exists(name)) return false;
  names_.at(name)->truncate(size);
  return true;
}

bool SimDisk::sync(const std::string& name) {
  if (!works()) return false;
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  found->second->sync();
  return true;
}

bool SimDisk::rename(const std::string& from, const std::string& to) {
  if (!works() || !exists(from)) return false;
  change({to, names_.at(from), from});
  return true;
}

bool SimDisk::remove(const std::string& name) {
  if (!works() || !exists(name)) return false;
  change({name, nullptr, std::nullopt});
  return true;
}

bool SimDisk::sync_directory() {
  if (!works()) return false;
  durable_names_ = names_;
  unsynced_names_.clear();
  return true;
}

std::string SimDisk::read(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::string() : found->second->bytes();
}

std::size_t SimDisk::size(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? 0 : found->second->bytes().size();
}

void SimDisk::crash(Crash kind, Rng& rng) {
  clear_fault();
  if (kind == Crash::Kill) return;
  const std::size_t kept = rng.below(unsynced_names_.size() + 1);
  for (std::size_t i = 0; i < kept; ++i) apply(durable_names_, unsynced_names_[i]);
  names_ = durable_names_;
  unsynced_names_.clear();
  for (const auto& [name, file] : names_) lose_power(*file, rng);
}

}  // namespace berth::test
