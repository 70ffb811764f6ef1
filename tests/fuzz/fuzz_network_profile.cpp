// A network profile from a file or an invitation: what is accepted is valid, describes a model that exists,
// and writes itself back with the same network id.
#include "core/base/check.h"
#include "core/config/model_part.h"
#include "core/config/network_profile.h"

namespace config = neuroshard::config;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = config::parse_network_profile({data, size});
  if (!profile) return 0;
  NS_CHECK(config::validate(profile->consensus).ok());
  NS_CHECK(config::validate(profile->directory).ok());
  const neuroshard::compute::ModelShape shape = config::model_shape(profile->consensus);
  NS_CHECK(shape.hidden > 0 && shape.layers > 0);
  const std::size_t parts = config::model_parts(profile->consensus).size();
  for (std::uint64_t size = 1; size <= profile->consensus.sizes.size(); ++size) {
    const config::ConsensusPart later = config::at_size(profile->consensus, size);
    NS_CHECK(config::model_shape(later).layers >= shape.layers && config::model_parts(later).size() == parts);
  }
  const std::string text = config::format_network_profile(*profile);
  const auto again = config::parse_network_profile(neuroshard::as_bytes(text));
  NS_CHECK(again.ok());
  NS_CHECK(config::network_id(again->consensus) == config::network_id(profile->consensus));
  return 0;
}
