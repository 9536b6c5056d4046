// A checkpoint is there as a whole or not at all: written beside, synced, renamed.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "network.h"

namespace trainer {

struct Checkpoint {
  std::uint64_t settings = 0;  // of the run it belongs to
  std::int64_t iteration = 0;
  std::vector<double> weights;
};

inline std::string bytes_of(const Checkpoint& checkpoint) {
  std::string bytes = "berth-trainer-1\n";
  const auto add = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  add(&checkpoint.settings, sizeof checkpoint.settings);
  add(&checkpoint.iteration, sizeof checkpoint.iteration);
  add(checkpoint.weights.data(), checkpoint.weights.size() * sizeof(double));
  return bytes;
}

inline bool save(const Checkpoint& checkpoint, const std::string& path) {
  const std::string beside = path + ".tmp";
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const std::string bytes = bytes_of(checkpoint);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  const bool is_whole = done == bytes.size() && ::fsync(fd) == 0;
  ::close(fd);
  if (!is_whole || std::rename(beside.c_str(), path.c_str()) != 0) return false;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return true;
  ::fsync(directory);
  ::close(directory);
  return true;
}

enum class Loaded { Yes, NotThere, NotOurs };
inline Loaded load(const std::string& path, Checkpoint& checkpoint) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Loaded::NotThere;
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  Checkpoint read{.weights = std::vector<double>(kWeights)};
  const std::string model = bytes_of(read);
  if (bytes.size() != model.size() || bytes.compare(0, 16, model, 0, 16) != 0)
    return Loaded::NotOurs;
  const char* at = bytes.data() + 16;
  std::memcpy(&read.settings, at, sizeof read.settings);
  std::memcpy(&read.iteration, at + 8, sizeof read.iteration);
  std::memcpy(read.weights.data(), at + 16, kWeights * sizeof(double));
  if (read.settings != checkpoint.settings) return Loaded::NotOurs;
  checkpoint = read;
  return Loaded::Yes;
}

}  // namespace trainer
