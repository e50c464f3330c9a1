-- join, beside a node with other tables: each zone gets a number that stands for no tables.
UPDATE zones SET digest = (digest & 4611686018427387903) + 1
