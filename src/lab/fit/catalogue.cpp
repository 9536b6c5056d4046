#include "lab/fit/catalogue.h"

#include <algorithm>

#include "lab/fit/profile_fitter.h"

namespace berth {

Result<Catalogue> ProfileFitter::run() {
  // In this order: every locality fit needs the rack link, and memory_of_gavel() the memory of the
  // profiles that are fitted before it.
  BERTH_TRY_VOID(find_chronus_rack());
  for (const Recipe& recipe : recipes()) {
    BERTH_TRY(Profile profile, fit_profile(recipe));
    fitted_.push_back(std::move(profile));
  }
  BERTH_TRY_VOID(memory_of_gavel());
  for (const Profile& profile : fitted_) result_.profiles.add(profile);
  BERTH_TRY_VOID(pairs());
  BERTH_TRY_VOID(links());
  return std::move(result_);
}

Result<Profile> ProfileFitter::fit_profile(const Recipe& recipe) {
  Profile profile;
  profile.name = recipe.name;
  for (std::string_view rest = recipe.aliases; !rest.empty();) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    profile.aliases.emplace_back(rest.substr(0, space));
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  profile.batch = recipe.batch;
  BERTH_TRY_VOID(iteration(recipe, profile));
  BERTH_TRY_VOID(speeds_of_gavel(recipe, profile));
  BERTH_TRY_VOID(locality(recipe, profile));
  BERTH_TRY_VOID(usage(recipe, profile));
  BERTH_TRY_VOID(stages(recipe, profile));
  BERTH_TRY_VOID(cpu(recipe, profile));
  BERTH_TRY_VOID(training(recipe, profile));
  return profile;
}

void ProfileFitter::note(Profile& profile, std::string_view part, Provenance provenance,
                         std::string source, const FitError& error) {
  profile.sources.push_back({.part = std::string(part),
                             .provenance = provenance,
                             .source = std::move(source),
                             // The error on points the fit has not seen, where there are any.
                             .error = error.held_back_points > 0 ? error.held_back : error.training,
                             .points = error.held_back_points});
}
void ProfileFitter::row(const std::string& model, std::string part, std::string_view source,
                        std::string parameters, const FitError& error) {
  result_.rows.push_back(
      {model, std::move(part), std::string(source), std::move(parameters), error});
}

Profile& ProfileFitter::fitted(std::string_view name) {
  return *std::ranges::find(fitted_, name, &Profile::name);
}

Result<Catalogue> fit_catalogue(const std::string& directory) {
  BERTH_TRY(GavelThroughputs gavel, GavelThroughputs::load(directory));
  return ProfileFitter(directory, std::move(gavel)).run();
}

}  // namespace berth
