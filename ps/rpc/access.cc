#include "ps/rpc/access.h"

namespace fleetrun::ps {

Access access_of(const Environ& environ) {
  return fleetrun::access_of(environ, "parameter servers", "read and change its parameters");
}

}  // namespace fleetrun::ps
