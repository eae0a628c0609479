"""The intermediate representation of TorchScript: types, values, nodes, blocks, graphs."""
