// Fits y = 3 x - 1 by gradient descent, saves the line and reads it back.
#include <tenon/io/tensors.hpp>
#include <tenon/tenon.hpp>

#include <cstdio>
using namespace tenon;

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: fit FILE.safetensors\n"), 2;
  const Tensor x = arange(0, 1, 0.01).reshape({100, 1}), y = x * 3 - 1;
  nn::Linear line(1, 1);
  optim::SGD sgd(line.parameters(), {.lr = 0.5});
  for (int step = 0; step < 500; ++step) {
    sgd.zero_grad();
    nn::mse_loss(line(x), y).backward();
    sgd.step();
  }
  save_safetensors(argv[1], {{"weight", line.weight}, {"bias", line.bias}});
  auto saved = load_safetensors(argv[1]);
  std::printf("line %.2f %.2f\n", saved.at("weight").item<double>(), saved.at("bias").item<double>());
}
