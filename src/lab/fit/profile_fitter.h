// Fits every part of every profile as its recipe says (recipes.h), and remembers what to print about
// it. Private to the catalogue: catalogue.cpp has the order, profile_speed.cpp and
// profile_sharing.cpp the parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lab/fit/catalogue.h"
#include "lab/fit/published.h"
#include "lab/fit/recipes.h"

namespace berth {

class ProfileFitter {
 public:
  ProfileFitter(std::string directory, GavelThroughputs gavel)
      : directory_(std::move(directory)), gavel_(std::move(gavel)) {}
  [[nodiscard]] Result<Catalogue> run();

 private:
  [[nodiscard]] Result<Profile> fit_profile(const Recipe& recipe);
  void note(Profile& profile, std::string_view part, Provenance provenance, std::string source,
            const FitError& error = {});
  void row(const std::string& model, std::string part, std::string_view source,
           std::string parameters, const FitError& error);

  // How fast: iteration times, device types, locality, cores.
  [[nodiscard]] Result<std::vector<StepPoint>> steps(const Recipe& recipe) const;
  [[nodiscard]] Result<void> iteration(const Recipe& recipe, Profile& profile);
  [[nodiscard]] Result<void> speeds_of_gavel(const Recipe& recipe, Profile& profile);
  [[nodiscard]] Result<void> find_chronus_rack();
  [[nodiscard]] Result<void> locality(const Recipe& recipe, Profile& profile);
  [[nodiscard]] Result<void> cpu(const Recipe& recipe, Profile& profile);
  [[nodiscard]] Result<void> training(const Recipe& recipe, Profile& profile);

  // What it uses and what sharing costs.
  [[nodiscard]] Result<void> usage(const Recipe& recipe, Profile& profile);
  [[nodiscard]] Result<void> stages(const Recipe& recipe, Profile& profile);
  [[nodiscard]] Result<void> memory_of_gavel();
  void add_pairs(const PairFit& fit, std::string_view source);
  [[nodiscard]] Result<void> pairs();
  [[nodiscard]] Result<void> links();

  [[nodiscard]] Profile& fitted(std::string_view name);

  std::string directory_;
  GavelThroughputs gavel_;
  double chronus_rack_ = 0;  // bytes per second
  std::vector<Profile> fitted_;
  Catalogue result_;
};

inline constexpr double kBytesPerParameter = 4;  // full-precision gradients

/// Four significant digits: what a reader of the table needs.
[[nodiscard]] inline std::string brief(double value) { return fmt::format("{:.4g}", value); }

}  // namespace berth
