import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'out', 'bundled', 'node_modules', 'test/fixtures'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      eqeqeq: 'error',
      // Numbers and booleans in templates print as expected.
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
    },
  },
  {
    // These parts are tested in plain Node, where there is no editor.
    files: ['src/bridge/**', 'src/launch/**', 'test/unit/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: [{ name: 'vscode', message: 'This part must work without an editor.' }] },
      ],
    },
  },
  {
    files: ['test/**'],
    // The test runners await the promises that describe, it and test return.
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: ['describe', 'it', 'test', 'before', 'after', 'afterEach', 'suite'].map(
            (name) => ({ from: 'package', package: 'node:test', name }),
          ),
        },
      ],
    },
  },
);
